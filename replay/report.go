package replay

import "time"

// Report is what a replay found. Numbers of clients and keys are exact unless the field beside them says that they are
// estimated, from an even sample.
type Report struct {
	Policy  string `json:"policy"`
	Against string `json:"against,omitempty"`
	// Interrupted tells that the replay was stopped before the end of the log.
	Interrupted bool      `json:"interrupted"`
	Log         LogReport `json:"log"`
	Total       Total     `json:"total"`
	// Before is the same of the policy that it is compared with.
	Before *Total       `json:"before,omitempty"`
	Rules  []RuleReport `json:"rules"`
	// Lists are the deny lists, and whatever else denied without being a rule.
	Lists       []ListReport `json:"lists"`
	Suggestions []Suggestion `json:"suggestions"`
	Difference  *Difference  `json:"difference,omitempty"`
	// Series is the whole time, Busiest the ten minutes around the busiest second, second by second.
	Series  Series   `json:"series"`
	Busiest Series   `json:"busiest"`
	Notes   []string `json:"notes"`
}

// LogReport says what was read.
type LogReport struct {
	Files []FileReport `json:"files"`
	Lines int64        `json:"lines"`
	// Requests were judged.
	Requests  int64 `json:"requests"`
	Malformed int64 `json:"malformed"`
	// NotHTTP are lines whose request is none that reaches a policy, such as a TLS handshake on a plain port.
	NotHTTP int64 `json:"not_http"`
	// OutOfOrder requests came after later ones; Late are those of them that came too late and were judged at the time the
	// replay had reached; Stray had a time that none of their neighbours confirmed.
	OutOfOrder     int64     `json:"out_of_order"`
	Late           int64     `json:"late"`
	Stray          int64     `json:"stray"`
	From           time.Time `json:"from"`
	To             time.Time `json:"to"`
	Clients        Count     `json:"clients"`
	MalformedLines []BadLine `json:"malformed_lines"`
}

// FileReport says what was read of one file.
type FileReport struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Lines  int64  `json:"lines"`
}

// Count is a number that may be estimated.
type Count struct {
	N         int64 `json:"n"`
	Estimated bool  `json:"estimated,omitempty"`
}

// Total is what a policy did to all requests.
type Total struct {
	Requests   int64   `json:"requests"`
	Allowed    int64   `json:"allowed"`
	Denied     int64   `json:"denied"`
	DenialRate float64 `json:"denial_rate"` // 0 to 1
	// ClientsHit had at least one request denied.
	ClientsHit   Count   `json:"clients_hit"`
	ClientsShare float64 `json:"clients_share"` // of all clients, 0 to 1
	// PeakBefore is the most requests of one second, PeakAfter the most that were let through.
	PeakBefore   int64     `json:"peak_before"`
	PeakBeforeAt time.Time `json:"peak_before_at"`
	PeakAfter    int64     `json:"peak_after"`
	// Kinds has how many requests were denied by kind: limited, locked_out, forbidden…
	Kinds map[string]int64 `json:"kinds"`
	// Waited were let through after a wait, LongestWaitMS the longest in milliseconds.
	Waited        int64   `json:"waited"`
	LongestWaitMS float64 `json:"longest_wait_ms"`
	// Marked were let through over a limit, with a mark for the service.
	Marked int64   `json:"marked"`
	Money  []Money `json:"money,omitempty"`
}

// Money is what requests cost, and what denials saved, in one currency.
type Money struct {
	Currency string  `json:"currency"`
	Spent    float64 `json:"spent"`
	Saved    float64 `json:"saved"`
}

// RuleReport is what one rule did.
type RuleReport struct {
	Rule   string   `json:"rule"`
	Mode   string   `json:"mode"`
	Limits []string `json:"limits"`
	// Lacks are dimensions without which the key is not told, and that the log does not have: the figures of the rule are not
	// what they would be, and there is no suggestion.
	Lacks []string `json:"lacks,omitempty"`
	// Requests matched the rule. Denied are those that it decided to deny, Over those that one of its limits had no room for,
	// whether or not another rule decided, and Marked those of them that were let through. A shadow rule denies nothing;
	// ShadowDenied is what it would have.
	Requests     int64   `json:"requests"`
	Denied       int64   `json:"denied"`
	DenialRate   float64 `json:"denial_rate"`
	Over         int64   `json:"over"`
	Marked       int64   `json:"marked"`
	ShadowDenied int64   `json:"shadow_denied"`
	// Clients sent requests that matched; ClientsHit of them had one that was denied, for a shadow rule would have.
	Clients      Count   `json:"clients"`
	ClientsHit   Count   `json:"clients_hit"`
	ClientsShare float64 `json:"clients_share"`
	// PeakBefore is the most of its requests in one second, PeakAfter the most of them that were let through.
	PeakBefore int64       `json:"peak_before"`
	PeakAfter  int64       `json:"peak_after"`
	TopKeys    []KeyReport `json:"top_keys"`
	Money      *Money      `json:"money,omitempty"`
}

// KeyReport is one key of a rule.
type KeyReport struct {
	Key string `json:"key"`
	// Requests and Denied are counts of the key; with Estimated they are about right, and Denied is never too low.
	Requests  int64 `json:"requests"`
	Denied    int64 `json:"denied"`
	Estimated bool  `json:"estimated,omitempty"`
}

// ListReport is a list that denied.
type ListReport struct {
	Name   string `json:"name"`
	Denied int64  `json:"denied"`
}

// Suggestion says how much the keys of one limit would have needed, and what limit has room for most of them.
type Suggestion struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"`
	// Measure says what Need counts, such as "requests in any 5m0s".
	Measure string `json:"measure"`
	// Keys were seen; Over of them would have needed more than the limit has.
	Keys  Count   `json:"keys"`
	Over  Count   `json:"over"`
	Share float64 `json:"share"` // Over of Keys, 0 to 1
	// Need has, at the given part of the keys, what they needed at most.
	Need Quantiles `json:"need"`
	// P99 and P999 are limits under which 99 and 99.9 percent of the keys would never have been denied; "" if there is none.
	P99  string `json:"p99"`
	P999 string `json:"p99_9"`
	Note string `json:"note,omitempty"`
}

// Quantiles are taken over keys.
type Quantiles struct {
	P50  int64 `json:"p50"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p99_9"`
	Max  int64 `json:"max"`
}

// Difference compares with the other policy.
type Difference struct {
	// NewOnly requests are denied by the new policy and not by the old, OldOnly the other way round.
	NewOnly int64 `json:"denied_by_new_only"`
	OldOnly int64 `json:"denied_by_old_only"`
	Both    int64 `json:"denied_by_both"`
	// NewlyHit clients had a request denied by the new policy and none by the old, Relieved the other way round.
	NewlyHit Count            `json:"clients_newly_hit"`
	Relieved Count            `json:"clients_relieved"`
	Rules    []RuleDifference `json:"rules"`
}

// RuleDifference compares the rules of one name. In tells which of the policies has it, "both", "new" or "old", or "list"
// for a list that denied.
type RuleDifference struct {
	Rule        string `json:"rule"`
	In          string `json:"in"`
	OldRequests int64  `json:"old_requests"`
	NewRequests int64  `json:"new_requests"`
	OldDenied   int64  `json:"old_denied"`
	NewDenied   int64  `json:"new_denied"`
}

// Series is the traffic over time.
type Series struct {
	From     time.Time `json:"from"`
	SliceS   int64     `json:"slice_s"`
	Requests []int64   `json:"requests"`
	Allowed  []int64   `json:"allowed"`
	// Before is what the policy that it is compared with let through.
	Before []int64 `json:"allowed_before,omitempty"`
}
