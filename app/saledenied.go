package app

import (
	"strings"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/salehttp"
	"github.com/headgate-io/headgate/gateway"
)

// noteDenied keeps for the story of a shopper that the policy has denied a request to a sale. Whose it was may cost the verification of a
// token that nothing else needs, so that there is a bound for the time that it takes: a flood of denials stays as cheap as it is.
func (s *sale) noteDenied(e *gateway.Event) {
	if e.Verdict == nil || e.Verdict.Allowed() || e.Judged == nil {
		return
	}
	away, ok := askedOf(e.Judged.Path)
	l := s.live.Load()
	if !ok || l == nil {
		return
	}
	began, granted := s.aside.begin()
	if !granted {
		l.engine.MissTurnedAway(away.Key)
		return
	}
	defer s.aside.end(began)
	// What would have to be asked of others is not: they would be asked for each request that is denied.
	if away.User, ok = s.guard().Value(s.ended, e.Judged, s.cfg.User); !ok {
		return
	}
	away.Rule, away.Code, away.RetryAfter = e.Verdict.Rule, e.Verdict.Code, retryOf(e.Verdict.RetryAfter)
	l.engine.NoteTurnedAway(&away)
}

// retryOf is when to come again, 0 if that is unknown or never.
func retryOf(r headgate.Retry) time.Duration {
	if r.State != headgate.RetryAfter {
		return 0
	}
	return r.After
}

// askedOf tells what a path of the sale's routes asks for, and of which sku or sale. The words that say so are constants.
func askedOf(path string) (away engine.TurnedAway, ok bool) {
	rest, ok := strings.CutPrefix(path, salehttp.Prefix+"/")
	if !ok {
		return away, false
	}
	sale, rest, more := strings.Cut(rest, "/")
	away.Key, away.Detail = flashsale.Key{Sale: sale}, "sale"
	switch {
	case sale == "~":
		return away, false
	case !more:
		return away, true
	case rest == "orders":
		away.Detail = "orders"
		return away, true
	}
	if rest, ok = strings.CutPrefix(rest, "skus/"); !ok {
		return away, false
	}
	away.Key.SKU, rest, _ = strings.Cut(rest, "/")
	away.Detail = askedOfSKU(rest)
	return away, away.Detail != ""
}

func askedOfSKU(rest string) string {
	what, rest, _ := strings.Cut(rest, "/")
	switch {
	case what == "token" && rest == "":
		return "token"
	case what != "reservations":
		return ""
	case rest == "":
		return "reservation"
	}
	_, step, _ := strings.Cut(rest, "/")
	for _, known := range [...]string{"events", "ticket", "pay", "cancel"} {
		if step == known {
			return known
		}
	}
	if step != "" {
		return ""
	}
	return "result"
}

const (
	// asideShare of the time of one processor is what is done aside granted, asideBurst of it at once.
	asideShare = 20 // one 20th
	asideBurst = 5 * time.Millisecond
)

// asideTime bounds the time that something takes beside what is to be done. Its zero value is ready. It is safe for concurrent use.
type asideTime struct {
	// free is when all that was taken is paid back, in ns since start.
	free  atomic.Int64
	start time.Time
}

func newAsideTime() *asideTime { return &asideTime{start: time.Now()} }

// begin reports whether there is time.
func (a *asideTime) begin() (began time.Duration, ok bool) {
	began = time.Since(a.start)
	return began, a.free.Load() <= int64(began+asideShare*asideBurst)
}

// end takes the time since begin.
func (a *asideTime) end(began time.Duration) {
	price := asideShare * int64(time.Since(a.start)-began)
	for {
		free := a.free.Load()
		if a.free.CompareAndSwap(free, max(free, int64(began))+price) {
			return
		}
	}
}
