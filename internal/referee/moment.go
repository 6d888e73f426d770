package referee

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Moment returns when a charge that passed was decided, in microseconds since the Unix epoch, given the times right before
// and after its call on the store's clock. A decision under way at the edge of a window belongs to the side that the store
// put it on, which only the store knows: it tells in the outcome. Its word is taken no further than the call lasted, so that
// a store cannot talk itself out of what it has admitted; own tells whether the time is the store's. Where the outcome tells
// none it is that of the end of the call.
func Moment(limit headgate.Limit, o *headgate.Outcome, began, ended time.Time) (at int64, own bool) {
	from, to := began.UnixMicro(), ended.UnixMicro()
	said, ok := told(limit, o, from)
	if !ok {
		return to, false
	}
	at = min(max(said, from), to)
	return at, at == said
}

// told works the time of a decision, which was not before from, out of its outcome.
func told(limit headgate.Limit, o *headgate.Outcome, from int64) (int64, bool) {
	if o.Receipt.Charged == 0 {
		return 0, false
	}
	mark, reset := o.Receipt.Mark, o.ResetAfter.Microseconds()
	switch l := limit.(type) {
	case headgate.TokenBucket, headgate.LeakyBucket:
		return mark - reset, true // both are rounded up from the same moment
	case headgate.SlidingLog:
		return mark, true
	case headgate.FixedWindow:
		if l.Period() > 0 {
			return mark + l.Period().Microseconds() - reset, true
		}
		return max(mark, from), true // a calendar window that began before the call holds its beginning
	case headgate.SlidingWindow:
		k := max(l.Cells(), 1)
		return mark + (k+1)*(l.Period().Microseconds()/k) - reset, true
	}
	return 0, false
}
