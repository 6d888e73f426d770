package app

import "time"

// SaleStatus is of the sales that the process runs.
type SaleStatus struct {
	DB    string `json:"db"`
	Stock string `json:"stock"`
	Pay   string `json:"pay"`
	Relay string `json:"relay,omitempty"`
	// Reached tells that the stores have been reached at some time since the start; Why is what keeps them from it.
	Reached bool   `json:"reached"`
	Why     string `json:"why,omitempty"`
	// Instance names this process among those that run the same sales.
	Instance string `json:"instance,omitempty"`
	// Secrets are the files that keys and secrets come from.
	Secrets []SecretStatus `json:"secrets,omitempty"`
	// Alarms are those that are on in this process.
	Alarms []SaleAlarm `json:"alarms,omitempty"`
}

// SaleAlarm is something that needs a look.
type SaleAlarm struct {
	Alarm string `json:"alarm"`
	// SKU is "sale/sku", left out if it is about all.
	SKU   string    `json:"sku,omitempty"`
	Value float64   `json:"value"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

func (s *sale) status() *SaleStatus {
	now := &SaleStatus{DB: s.cfg.shownDB(), Stock: s.cfg.Store.String(), Pay: s.cfg.shownPay()}
	if s.cfg.Relay != "" {
		now.Relay = shownRelay(s.cfg.Relay)
	}
	for _, one := range s.secrets {
		now.Secrets = append(now.Secrets, one.status())
	}
	l := s.live.Load()
	if l == nil {
		now.Why = s.whyAway()
		return now
	}
	now.Reached, now.Instance = true, l.engine.Instance()
	for _, a := range l.engine.Alarms() {
		now.Alarms = append(now.Alarms, SaleAlarm{Alarm: a.Kind, SKU: a.SKU, Value: a.Value, Why: a.Why, Since: a.Since.UTC()})
	}
	return now
}
