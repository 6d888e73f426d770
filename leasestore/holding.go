package leasestore

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// maxLeases is how many leases of a key are kept until they die, spent ones too: what is refunded goes back into them. What
// comes too late for that is refunded at the upstream.
const maxLeases = 8

// holding is what this instance has of one key. What is only read by a spend stands first.
type holding struct {
	slot, key string
	// current is the lease that is spent from, nil if there is none.
	current atomic.Pointer[lease]
	// refusal denies, nil if nothing is known.
	refusal atomic.Pointer[refusal]
	// more tells that a lease beside the current one has units, so that the refusal must not be believed.
	more atomic.Bool

	mu sync.Mutex // guards what follows; held for moments only, never during a call
	// gone: swept; the map has another, or none.
	gone bool
	// limit is the one of the last charge.
	limit  headgate.Limit
	leases []*lease
	// upstream is what was left there when the last of them was charged.
	upstream int64
	// armed is the last current lease whose low mark was set.
	armed *lease
	// call is the one that is under way for this key, nil if there is none.
	call *call
	// failed is how the last call failed, and believed until failedUntil.
	failed      error
	failedUntil int64
	// askAt is the time of the next call for units, after one that brought fewer than were asked for; empty counts those in a
	// row that brought none.
	askAt int64
	empty int
	// endAt is when a window or cell was found to end, 0 if none was.
	endAt int64
	// resets counts the resets: units that were charged before one are gone.
	resets uint32
	// waiting is how many units the waiting takes want.
	waiting int64
	// spent counts the units spent from leases that are gone, asked those that were denied or paid without a lease.
	spent, asked int64
	demand       demand
	// used is when the lock was last taken for a take.
	used int64
}

// total is how many units the key was asked for in all. The caller holds the lock.
func (h *holding) total() int64 {
	n := h.spent + h.asked
	for _, l := range h.leases {
		n += l.granted - l.held()
	}
	if r := h.refusal.Load(); r != nil {
		n += r.denied.Load()
	}
	return n
}

// held is how many units can be spent. The caller holds the lock.
func (h *holding) held() (n int64) {
	for _, l := range h.leases {
		n += l.held()
	}
	return n
}

// deny replaces what is known about denials. The caller holds the lock.
func (h *holding) deny(r *refusal) {
	if old := h.refusal.Swap(r); old != nil {
		h.asked += old.denied.Load()
	}
}

// pick makes a lease the current one that has n units, the one that dies first. The caller holds the lock, and has dropped
// those that are dead.
func (h *holding) pick(n int64) *lease {
	var best *lease
	units, of, all := 0, int64(0), h.upstream
	for _, l := range h.leases {
		left := l.held()
		if left > 0 {
			units++
		}
		all += left
		if left >= n && (best == nil || l.deadline < best.deadline) {
			best, of = l, left
		}
	}
	if best != nil {
		best.beyond.Store(all - of)
		h.current.Store(best)
	}
	if cur := h.current.Load(); cur != nil && cur.held() > 0 {
		units--
	}
	h.more.Store(units > 0)
	return best
}

// spend takes n units from one lease, or from several that one refund can give back, and returns the lease that the receipt is of,
// and what remains. The caller holds the lock, and has dropped the leases that are dead.
func (h *holding) spend(n int64) (from *lease, remaining int64) {
	for {
		l := h.pick(n)
		if l == nil {
			from, remaining = h.gather(n)
			h.pick(1)
			return from, remaining
		}
		if left, ok := l.take(n); ok {
			return l, h.remaining(l, left)
		}
	}
}

// remaining is how many units there are, here and at the upstream, when a lease has so many left. The caller holds the lock.
func (h *holding) remaining(l *lease, left int64) int64 {
	left += h.upstream
	for _, other := range h.leases {
		if other != l {
			left += other.held()
		}
	}
	return left
}

// gather takes n units from several leases: of one window or cell, where all units are the same, or of a bucket, where a refund
// counts as of the earliest.
func (h *holding) gather(n int64) (from *lease, remaining int64) {
	if h.held() < n {
		return nil, 0
	}
	_, bucket := h.limit.(headgate.TokenBucket)
	got := make([]int64, len(h.leases))
	for i, l := range h.leases {
		if from != nil && from.mark != l.mark && !bucket {
			continue
		}
		part := min(n, l.held())
		if part == 0 {
			continue
		}
		rest, ok := l.take(part)
		if !ok {
			continue
		}
		if got[i], n, remaining = part, n-part, h.remaining(l, rest); from == nil || l.mark < from.mark {
			from = l
		}
		if n == 0 {
			return from, remaining
		}
	}
	for i, l := range h.leases {
		l.restore(got[i])
	}
	return nil, 0
}

// drop takes out the leases for which do says so, and returns them; do is told each once. The caller holds the lock.
func (h *holding) drop(out func(*lease) bool) (dropped []*lease) {
	kept := h.leases[:0]
	for _, l := range h.leases {
		if out(l) {
			dropped = append(dropped, l)
			h.current.CompareAndSwap(l, nil)
			continue
		}
		kept = append(kept, l)
	}
	clear(h.leases[len(kept):])
	h.leases = kept
	return dropped
}

// recent is how many units the key was asked for in the last stretch of Ahead, those of the waiting takes included; no more than any
// limit has, so that nothing that is reckoned from it overflows.
func (h *holding) recent(now int64, ahead time.Duration) int64 {
	return min(h.demand.recent(now, h.total(), ahead)+h.waiting, headgate.MaxCount)
}

// target is how many units should be in hand, of a key that was asked for recent ones: they last for Ahead and for as long
// as a call takes, but not beyond the end of the window or cell.
func (h *holding) target(now, recent int64, ahead, took time.Duration) int64 {
	span := ahead + took
	if length := lengthOf(h.limit); length > 0 && h.endAt > 0 {
		end := h.endAt
		if end <= now {
			end += ((now-end)/int64(length) + 1) * int64(length)
		}
		span = min(span, time.Duration(end-now))
	}
	return int64(math.Round(float64(recent) * float64(span) / float64(ahead)))
}

// threshold is how many units are too few: those that are asked for in half of Ahead, and while a call is under way.
func threshold(recent int64, ahead, took time.Duration) int64 {
	return int64(float64(recent) * (0.5 + float64(took)/float64(ahead)))
}
