package engine

import "time"

// Observer is told what happens. Calls come from many goroutines and must not block. Keys are "sale/sku".
//
//nolint:interfacebloat // one method for each kind of thing that can happen
type Observer interface {
	// Reserved tells of a reserve call: outcome is "accepted", "known", or the code of the refusal or error.
	Reserved(sku, outcome string, took time.Duration)
	// Moved tells of a transition, by its name in the table of states, with its reason.
	Moved(sku, transition, reason string, quantity int64)
	// Batch tells of a batch of T1: jobs decided, how often it was repeated, the time of its transaction, and the age of its oldest job
	// when it was decided.
	Batch(sku string, jobs, retries int, took, oldest time.Duration)
	// Backlog tells the figures of a queue, about once a second.
	Backlog(sku string, depth, pulled, dead, pending int64, oldest time.Duration)
	// Workers tells that the number of consumers has changed.
	Workers(n int, why string)
	// Alarm tells that something needs a look, or does not any more. Kind is one of the Alarm constants.
	Alarm(kind, sku string, on bool, value float64, why string)
	// Job tells that a job ran: its name, what it did, and its error's code.
	Job(name string, did int, took time.Duration, code string)
	// Leased tells that this instance has got, or does not have any more, the lease of a job.
	Leased(name string, held bool)
	// Rebuilt tells that a rebuild has come to its end: the new epoch, and its error's code.
	Rebuilt(sku string, epoch int64, took time.Duration, code string)
}

// The kinds of alarms.
const (
	AlarmBacklog       = "backlog"        // more than 10,000 jobs wait
	AlarmLatency       = "latency"        // T1 takes more than 500 ms at p99, from T0 to its commit
	AlarmRetries       = "retries"        // more than 5 % of the batches are repeated
	AlarmDead          = "dead_letters"   // there are dead letters
	AlarmDrift         = "drift"          // Stock and SQL differ, and it did not go away
	AlarmLost          = "stock_lost"     // the Stock has lost data and is being rebuilt
	AlarmStock         = "stock"          // the Stock does not answer for all skus
	AlarmProvider      = "provider"       // the provider cannot be reached, and payments are held for it
	AlarmPaymentsMatch = "payments_match" // provider, orders and ledger do not agree
	AlarmSQL           = "sql"            // SQL does not answer
	AlarmRelay         = "relay"          // the broker takes no events, or refuses some for good; they wait in the outbox
)

type nobody struct{}

func (nobody) Reserved(string, string, time.Duration)                    {}
func (nobody) Moved(string, string, string, int64)                       {}
func (nobody) Batch(string, int, int, time.Duration, time.Duration)      {}
func (nobody) Backlog(string, int64, int64, int64, int64, time.Duration) {}
func (nobody) Workers(int, string)                                       {}
func (nobody) Alarm(string, string, bool, float64, string)               {}
func (nobody) Job(string, int, time.Duration, string)                    {}
func (nobody) Leased(string, bool)                                       {}
func (nobody) Rebuilt(string, int64, time.Duration, string)              {}
