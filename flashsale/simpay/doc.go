// Package simpay is a payment provider for tests and demonstrations. It has no bank behind it and is otherwise like one: an intent is
// made once for each key, shoppers pay, fail to, or walk away, and what happens is told by signed webhooks that come late, twice, in
// the wrong order, or never; a void may come too late, and a call may fail before or after it has taken effect.
//
// What it does depends on its Config, its clock and its randomness alone: with both given, the same calls have the same results.
// Time passes in [Provider.Step]; [Provider.Run] calls it as real time passes.
package simpay
