package redisstore

import (
	"encoding/binary"
	"hash/fnv"
	"math"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// The kinds of specs, as take.lua knows them. A token bucket whose tokens take whole microseconds is the shorter kind.
const (
	kindWholeTokens byte = iota + 1
	kindTokens
	kindFixed
	kindCalendar
	kindLog
	kindCells
	kindQueue
	kindHolders
	kindNothing
)

// The formats of states, as head.lua knows them.
const (
	formatWholeTokens byte = iota + 1
	formatTokens
	formatFixed
	formatLog
	formatCells
	formatQueue
	formatHolders
	formatLockout
)

// kindsGeneral, among the kinds of a call, says that it has charges that are not plain.
const kindsGeneral = 1 << 15

const (
	flagNever   = 4
	flagLockout = 8
	noSpan      = -1
)

// spec is a limit with all that a charge asks of it but the key. The charges of a batch that have the same share it.
type spec struct {
	limit   headgate.Limit
	cost    int64
	mode    headgate.Mode
	lockout headgate.Lockout // After is 0 if there is none
	bounds  [4]int64         // of a calendar's windows
	refund  bool             // the cost is to be given back
}

func kindOf(l headgate.Limit) byte {
	switch l := l.(type) {
	case headgate.TokenBucket:
		switch _, rem, den := l.Pace(); {
		case den == 0:
			return kindNothing
		case rem == 0:
			return kindWholeTokens
		}
		return kindTokens
	case headgate.FixedWindow:
		if unit, _ := l.Calendar(); unit != headgate.NotCalendar {
			return orNothing(l.Count(), kindCalendar)
		}
		return orNothing(l.Count(), kindFixed)
	case headgate.SlidingLog:
		return orNothing(l.Count(), kindLog)
	case headgate.SlidingWindow:
		return orNothing(l.Count(), kindCells)
	case headgate.LeakyBucket:
		_, _, den := l.Pace()
		return orNothing(den, kindQueue)
	case headgate.Concurrency:
		return orNothing(l.Count(), kindHolders)
	}
	return kindNothing
}

func orNothing(count int64, kind byte) byte {
	if count == 0 {
		return kindNothing
	}
	return kind
}

// append writes the spec as take.lua reads it.
func (s *spec) append(b []byte) []byte {
	kind := kindOf(s.limit)
	start := len(b)
	b = append(b, kind, byte(s.mode), 0, 0, 0, 0, 0)
	never := false
	cost := s.cost
	switch l := s.limit.(type) {
	case headgate.TokenBucket:
		if kind != kindNothing {
			b, cost, never = appendTokens(b, l, s)
		}
	case headgate.LeakyBucket:
		if kind != kindNothing {
			b, cost, never = appendQueue(b, l, s)
		}
	case headgate.FixedWindow:
		b, never = s.appendWindow(b, kind, l)
	case headgate.SlidingLog:
		if kind != kindNothing {
			b = putUint(append(b, formatLog), uint64(l.Period().Microseconds()), 7)
			b = putUint(putUint(b, uint64(l.Count()), 5), uint64(l.Period().Microseconds()), 7)
			never = cost > l.Count()
		}
	case headgate.SlidingWindow:
		if kind != kindNothing {
			period := l.Period().Microseconds()
			b = append(putUint(append(b, formatCells), uint64(period), 7), byte(l.Cells()))
			b = putUint(putUint(b, uint64(l.Count()), 5), uint64(period/l.Cells()), 7)
			b = append(b, byte(l.Cells()))
			never = cost > l.Count()
		}
	case headgate.Concurrency:
		if kind != kindNothing {
			b = putUint(append(b, formatHolders), uint64(l.Count()), 5)
			b = putUint(b, uint64(l.TTL().Microseconds()), 7)
		}
	}
	copy(b[start+2:], putUint(nil, uint64(cost), 5))
	if never && s.mode != headgate.Settle {
		b[start+1] |= flagNever
	}
	return s.appendLockout(b, start)
}

func (s *spec) appendLockout(b []byte, start int) []byte {
	if s.lockout.After == 0 || s.mode == headgate.Settle {
		return b
	}
	b[start+1] |= flagLockout
	b = putUint(b, uint64(s.lockout.After), 5)
	b = putUint(b, uint64(s.lockout.Within.Microseconds()), 7)
	b = putUint(b, uint64(s.lockout.For.Microseconds()), 7)
	return putUint(b, uint64(s.lockout.Longest().Microseconds()), 7)
}

func appendTokens(b []byte, l headgate.TokenBucket, s *spec) (_ []byte, cost int64, never bool) {
	whole, rem, den := l.Pace()
	cost, never = min(s.cost, l.Burst()), s.cost > l.Burst()
	us, frac, _ := algo.Increment(l, cost)
	fullUs, fullFrac, _ := algo.Increment(l, l.Burst())
	if rem == 0 {
		b = putUint(putUint(append(b, formatWholeTokens), uint64(whole), 7), uint64(l.Burst()), 5)
		b = putUint(putUint(b, uint64(us), 7), uint64(fullUs), 7)
		b = putUint(putUint(b, uint64(whole), 7), uint64(l.Burst()), 5)
		return putUint(b, uint64(grid(fullUs)), 7), cost, never
	}
	b = putUint(putUint(putUint(append(b, formatTokens), uint64(whole), 7), uint64(rem), 7), uint64(den), 7)
	b = putUint(b, uint64(l.Burst()), 5)
	for _, n := range [...]int64{us, frac, fullUs, fullFrac, whole, rem, den} {
		b = putUint(b, uint64(n), 7)
	}
	b = appendPace(putUint(b, uint64(l.Burst()), 5), whole, rem, den)
	return putUint(b, uint64(grid(fullUs)), 7), cost, never
}

func appendQueue(b []byte, l headgate.LeakyBucket, s *spec) (_ []byte, cost int64, never bool) {
	whole, rem, den := l.Pace()
	capacity, bounded := l.Capacity()
	wait, waits := l.MaxWait()
	cost = s.cost
	us, frac, fits := algo.Increment(l, cost)
	if !fits || (bounded && cost > capacity) {
		never = true
		if cost = algo.Longest(l); bounded {
			cost = min(cost, capacity)
		}
		us, frac, _ = algo.Increment(l, cost)
	}
	if s.refund {
		us, frac = algo.Drain(l, s.cost)
	}
	capUs, capFrac, waitUs := int64(noSpan), int64(0), int64(noSpan)
	if bounded {
		capUs, capFrac, _ = algo.Increment(l, capacity)
	}
	if waits {
		waitUs = wait.Microseconds()
	}
	b = append(b, formatQueue)
	for _, n := range [...]int64{whole, rem, den} {
		b = putUint(b, uint64(n), 7)
	}
	b = putUint(putUint(b, uint64(capacity), 5), uint64(waitUs+1), 7)
	b = putUint(putUint(b, uint64(us), 7), uint64(frac), 7)
	b = putUint(putUint(b, uint64(capUs), 8), uint64(capFrac), 7)
	b = putUint(b, uint64(waitUs), 8)
	for _, n := range [...]int64{whole, rem, den} {
		b = putUint(b, uint64(n), 7)
	}
	b = appendPace(putUint(b, uint64(capacity), 5), whole, rem, den)
	return putUint(b, uint64(grid(max(capUs, waitUs))), 7), cost, never
}

// grid is what the expiry of a bucket's key is rounded up to, in µs: the largest second times a power of two within a
// sixteenth of the bucket's time to full, and at least a second.
func grid(full int64) int64 {
	g := int64(1_000_000)
	for 32*g <= full {
		g *= 2
	}
	return g
}

// appendPace writes the pace as the double that conversions use.
func appendPace(b []byte, whole, rem, den int64) []byte {
	pace := float64(whole) + float64(rem)/float64(den)
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(pace))
}

func (s *spec) appendWindow(b []byte, kind byte, l headgate.FixedWindow) (_ []byte, never bool) {
	if kind == kindNothing {
		return b, false
	}
	b = putUint(append(b, formatFixed), uint64(windowID(l)), 7)
	b = putUint(b, uint64(l.Count()), 5)
	if kind == kindFixed {
		return putUint(b, uint64(l.Period().Microseconds()), 7), s.cost > l.Count()
	}
	for _, t := range s.bounds {
		b = putUint(b, uint64(t), 7)
	}
	return b, s.cost > l.Count()
}

// windowID tells windows of different lengths apart: the period in microseconds or, above all of them, a calendar's unit
// and 40 bits of its zone's name.
func windowID(l headgate.FixedWindow) int64 {
	unit, zone := l.Calendar()
	if unit == headgate.NotCalendar {
		return l.Period().Microseconds()
	}
	h := fnv.New64a()
	h.Write([]byte(zone))
	return 1<<52 | int64(unit)<<40 | int64(h.Sum64()>>24)
}

// putUint appends the low bytes of a number, little endian.
func putUint(b []byte, n uint64, bytes int) []byte {
	for range bytes {
		b = append(b, byte(n))
		n >>= 8
	}
	return b
}

// getUint reads what putUint wrote.
func getUint(s string, bytes int) (n int64) {
	for i := range bytes {
		n |= int64(s[i]) << (8 * i)
	}
	return n
}

// getInt reads a number of 7 bytes with a sign.
func getInt(s string) int64 { return getUint(s, 7) << 8 >> 8 }
