// Package replay tells what a policy would have done to an access log: it reads the requests of one or more logs in the
// order of their times, asks the policy about each at its own time, and sums up what would have been let through, what
// denied, and who would have been hit.
//
// [Run] does all of it. The policy comes as an [httpverdict.Timed] decider whose store is its own, so that nothing real is
// charged. Memory is bounded whatever the length of the log: what cannot be counted exactly any more is estimated from an
// even sample of the keys, and marked so.
package replay
