//go:build race

package memstore

// flood is the keys of TestFlood: the race detector makes a million too slow.
const flood = 100_000
