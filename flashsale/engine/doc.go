// Package engine runs a flash sale on its ports: it takes units in the Stock, has SQL decide, follows SQL in the Stock, lets shoppers
// pay, and brings everything to its one end whatever fails between two steps. Any number of instances may run it on the same
// stores. Every step that a job makes can be made alone, by the methods that end in Once, which is how the tests interleave them.
//
// The example puts a whole sale together.
//
// # Where to read
//
// In the order of a unit's way:
//
//   - token.go, reserve.go: a shopper takes a unit in the Stock (T0); soldout.go: that there is none is answered from memory;
//   - consume.go: SQL decides (T1), in batches; consumepool.go and consumeboard.go say who decides what when, scale.go how many do,
//     consumepoison.go what becomes of a job that cannot be decided;
//   - deliver.go, deliverjob.go: the Stock follows SQL, at once or from the outbox; relay.go: other services hear of it;
//   - result.go, wake.go, follow.go, told.go: the shopper is told;
//   - pay.go, webhook.go, poll.go: payments (T3, T4, T5, T7); refund.go: captures that come too late or twice (T8, T9);
//   - sweep.go: what is past its time (T2, T6).
//
// Beside it: operate.go, drop.go and finish.go are what operators do; watch.go and rebuild.go notice and mend a loss of the Stock; reconcile.go, audit.go
// and match.go compare; run.go and lease.go have one of all instances do each job.
package engine
