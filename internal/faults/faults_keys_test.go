package faults

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// The flood of keys: how many an instance meets in a second, and for how long.
const (
	floodRate  = 100_000
	floodWhole = time.Minute
	floodShort = 5 * time.Second
)

// What a flood may take. Redis holds 11 s of a third of the keys; an instance the keys that its memory store and its leases
// may have, and what a collector leaves between two collections is not in it.
const (
	floodRedis = 256 << 20
	floodHeap  = 400 << 20
)

// keysFlooded: new keys without end, at a strict, a leased and a local rule. One key is denied at each all the time.
func keysFlooded(t *testing.T) *row {
	srv := testservers.Redis(t, testservers.MaxMemory("256mb"))
	place := addr(srv.Addr())
	place.flood = floodRate
	s := newScene(t, place)
	s.begin()
	d := floodShort
	if wholeTime() {
		d = floodWhole
	}
	s.lasts(d)
	s.used(srv)
	s.end()
	s.finish()
	if s.row.redis > floodRedis || s.row.heap > floodHeap {
		t.Errorf("Redis has %s, the instance %s", megabytes(s.row.redis), megabytes(s.row.heap))
	}
	return s.row
}
