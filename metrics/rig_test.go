package metrics

import (
	"flag"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	headgate "github.com/headgate-io/headgate"
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

func newMetrics(t testing.TB, cfg Config) *Metrics {
	t.Helper()
	cfg.OwnOnly = true
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scene is a moment in which everything has happened.
func scene(t testing.TB) *Metrics {
	t.Helper()
	m := newMetrics(t, sceneConfig())
	m.SetRules([]string{"login", "site", "list:scanners", "login", ""})
	p := m.Policy()
	p.Decided("login", "allow", 900*time.Nanosecond)
	p.Decided("login", "limited", 30*time.Microsecond)
	p.Decided("login", "limited", 2*time.Second)
	p.Decided("list:scanners", "forbidden", 1000*time.Nanosecond)
	p.Decided("", "allow", -time.Second) // a clock that was set
	p.Decided("gone", "locked_out", time.Millisecond)
	p.Decided("site", "postponed", time.Millisecond)
	p.ShadowDenied("site")
	p.StoreFailed("timeout", true)
	p.StoreFailed("", false)
	p.Shed("sheddable")
	p.Shed("urgent")

	s := m.Store()
	s.Call("192.0.2.1:6379", "take", 12, 400*time.Microsecond, "")
	s.Call("", "take", 1, 300*time.Millisecond, headgate.CodeIndeterminate)
	s.Call("192.0.2.1:6379", "fleet", 0, 2*time.Millisecond, "")
	s.Failed(headgate.CodeOverloaded, false)
	s.Failed(headgate.CodeTimeout, true)
	s.UnknownStates(3)
	s.NewKey("login/0")
	s.NewKey("login@user=u-99/1")
	s.NewKey("policy/in-force")
	m.Memory("fallback").ObserveKeys(10, 2, 30, 40)

	l := m.Leases()
	l.Leased("site/0", 100, 60, 700*time.Microsecond, "")
	l.Leased("site/0", 100, 0, 2*time.Millisecond, "unavailable")
	l.Leased("gone/0", 5, 5, time.Millisecond, "")
	l.Returned("site/0", 7, 2)

	r := m.Resilience()
	r.BreakerChanged("192.0.2.1:6379", true, "half failed")
	r.BreakerChanged("192.0.2.1:6379", false, "the probe came back")
	r.LevelChanged(1, true, "automatic", "the store does not answer")
	r.LevelChanged(3, true, "hand", "an attack")
	r.LevelAlert(2, "a quarter of the devices")
	r.OverloadChanged(true, "cpu at 95%")

	g := m.Gateway()
	g.Request(200, "allow", 12*time.Millisecond, 11*time.Millisecond)
	g.Request(429, "limited", 100*time.Microsecond, 0)
	g.Request(0, "", time.Minute, time.Second)
	g.Request(70000, "allow", time.Second, time.Second)
	sellAll(m.Sale())
	return m
}

// sellAll is a sale in which everything has happened.
func sellAll(v *SaleView) {
	const phone = "eleven/phone"
	v.Reserved(phone, "accepted", 3*time.Millisecond)
	v.Reserved(phone, "sold_out", 200*time.Microsecond)
	v.Reserved("", "unknown_sale", time.Microsecond)
	v.Batch(phone, 100, 0, 12*time.Millisecond, 80*time.Millisecond)
	v.Batch(phone, 2, 3, 700*time.Millisecond, 2*time.Second)
	for _, transition := range []string{"T1", "T2", "T3", "T3b", "T4", "T5", "T6", "T7", "T8", "T99"} {
		v.Moved(phone, transition, "", 2)
	}
	v.Moved(phone, "T1'", "sold_out", 1)
	v.Moved(phone, "T9", "paid_twice", 1)
	v.Backlog(phone, 110, 10, 1, 111, 1500*time.Millisecond)
	v.Workers(3, "the backlog")
	v.Alarm("dead_letters", phone, true, 1, "1 job could not be decided")
	v.Alarm("drift", "eleven/case", true, -4, "they differ")
	v.Alarm("sql", "", true, 2, "no answer")
	v.Alarm("sql", "", false, 0, "it answers")
	v.Rebuilt(phone, 2, 40*time.Millisecond, "")
	v.Rebuilt(phone, 3, time.Second, "unavailable")
	v.RefusalsWritten(250, 0, "")
	v.RefusalsWritten(0, 0, "unavailable")
	v.RefusalsWritten(30, 12, "")
	v.Leased("sweep", true)
	v.Leased("poll", true)
	v.Leased("poll", false)
	v.Job("sweep", 5, 3*time.Millisecond, "")
	v.Job("sweep", 0, time.Second, "unavailable")
}

func sceneConfig() Config {
	limit := headgate.MustParseLimit
	return Config{
		Version:   "v1.2.3",
		Instances: func() int { return 4 }, FleetAge: func() time.Duration { return 1500 * time.Millisecond },
		Switches: func() [3]bool { return [3]bool{true, false, true} },
		Breakers: func() map[string]bool { return map[string]bool{"192.0.2.1:6379": false, "192.0.2.2:6379": true} },
		Waiting:  func() int { return 5 },
		Gateway:  func() GatewayFigures { return GatewayFigures{InFlight: 6, Tunnels: 1, Held: 2} },
		Upstreams: func() []UpstreamFigures {
			return []UpstreamFigures{{"http://192.0.2.9", true, 1, 20, 100, 9}, {"http://192.0.2.9", false, 0, 0, 0, 0}, {"bad\xffname", false, 0, 0, 2, 0}}
		},
		Leases:    func() LeaseFigures { return LeaseFigures{3, 44} },
		DenyCache: func() DenyFigures { return DenyFigures{8, 90, 10, 1} },
		Overload: func() OverloadFigures {
			return OverloadFigures{true, 0.95, 0.5, 0.9, 0.85, [3]float64{0, 0.25, 1}}
		},
		Policy: func() PolicyFigures {
			return PolicyFigures{"90d2ab4471fe", time.UnixMicro(1_700_000_000_500_000), 3, true}
		},
		Limits: func() []LimitFigures {
			return []LimitFigures{
				{"login", 0, limit("token_bucket 0.5/s burst=5")}, {"login", 1, limit("fixed_window 20000/day")}, {"login", 1, limit("fixed_window 1/day")},
				{"login", 2, limit("concurrency 50 ttl=60s")}, {"site", 0, limit("leaky_bucket 10/s capacity=20")}, {"site", 1, limit("sliding_window 600/1m cells=6")},
				{"site", 2, limit("sliding_log 5/5m")}, {"site", 3, limit("fixed_window 1/month")}, {"gone", 0, limit("sliding_log 5/5m")}, {"site", 4, nil},
			}
		},
	}
}

func page(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}
