// Package chaos runs a demo whose store is made to fail: several instances share a Redis of the demo's own, which is killed,
// stopped, emptied and started again by a script while the crowd comes. A referee, who goes by the words of the policy's limits
// and by the requests that were let through, counts what was over a limit: while the data was there, without the store, and
// after its data was lost.
package chaos
