package leasestore

import (
	"math"
	"sync/atomic"

	headgate "github.com/headgate-io/headgate"
)

// lease is a number of units that were charged at the upstream and can be spent here. What stands first changes with every
// spend, and has a cache line of its own.
type lease struct {
	left atomic.Int64
	low  atomic.Int64 // below it more is to be charged; -1: that is under way or not needed
	_    [48]byte

	// limit is what it was charged under.
	limit headgate.Limit
	// deadline is the moment from which it is dead: it is never spent then.
	deadline int64
	// granted is how many units it had at first, and the most that it ever has.
	granted int64
	// beyond is what is left beside it, in other leases and at the upstream, as far as was known when it became the current one.
	beyond atomic.Int64
	// resetAt is when the state at the upstream would be as if never used. From then on a refund gives nothing.
	resetAt int64
	// mark is that of the upstream's receipt. Receipts of what is spent here have it too.
	mark int64
}

// retired is in left when a lease must not be spent any more, whatever is added or taken by those who do not know yet.
const retired = math.MinInt64 / 2

// take takes n units. The caller looks at the clock afterwards, and gives them back if the lease was dead.
func (l *lease) take(n int64) (left int64, ok bool) {
	if l.left.Load() < n {
		return 0, false
	}
	if left = l.left.Add(-n); left < 0 {
		l.left.Add(n)
		return 0, false
	}
	return left, true
}

// restore puts units back that were taken from this lease, or from the same window, and returns how many had room.
func (l *lease) restore(n int64) int64 {
	for {
		left := l.left.Load()
		if left < retired/2 {
			return 0
		}
		room := min(n, l.granted-left)
		if room <= 0 {
			return 0
		}
		if l.left.CompareAndSwap(left, left+room) {
			return room
		}
	}
}

// retire ends the lease and returns what was not spent. Units that somebody has in his hand just now and puts back are lost.
func (l *lease) retire() (unspent int64) { return max(0, l.left.Swap(retired)) }

// held is what can be spent.
func (l *lease) held() int64 { return max(0, l.left.Load()) }
