package nethttpmw

import (
	"errors"
	"net/http"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// DefaultMaxHeld is how many requests are held for a wait at a time unless Config says otherwise.
const DefaultMaxHeld = 1024

// Config shapes the middleware. The zero value is ready to use.
type Config struct {
	// MaxHeld is how many requests may be held for the wait of a queue at a time; further ones are answered 503. Each costs a
	// goroutine. 0 stands for DefaultMaxHeld.
	MaxHeld int
	// Stale keeps answers for rules that give old ones; nil stands for one with its defaults. The answers of several handlers
	// are kept apart.
	Stale *stale.Cache
	// Renderer writes the answers; the zero value uses the runtime's clock and random source.
	Renderer httpverdict.Renderer
	// OnVerdict, if set, is called with every verdict before it is applied, from many goroutines at a time. It must not keep
	// or change the verdict.
	OnVerdict func(*http.Request, *httpverdict.Verdict)
}

// New returns a middleware that applies the verdicts of a decider. It refuses a nil decider and one whose policy needs what
// the middleware cannot give, see [Check]. The middleware is safe for concurrent use, also over several handlers.
func New(d httpverdict.Decider, cfg Config) (func(http.Handler) http.Handler, error) {
	if err := Check(d); err != nil {
		return nil, err
	}
	if cfg.MaxHeld < 0 {
		return nil, errors.New("nethttpmw: Config.MaxHeld is negative; use 0 for the default")
	}
	if cfg.MaxHeld == 0 {
		cfg.MaxHeld = DefaultMaxHeld
	}
	if cfg.Stale == nil {
		var err error
		if cfg.Stale, err = stale.New(stale.Config{}); err != nil {
			return nil, err
		}
	}
	holds := httpverdict.NewHolds(cfg.MaxHeld)
	return func(next http.Handler) http.Handler {
		return &front{decider: d, next: next, cfg: cfg, holds: holds}
	}, nil
}

// Check refuses a policy that needs what the middleware cannot give, as New does: it can do all that a policy may need of a
// front. It is for a policy that is to take the place of another behind the same Decider.
func Check(d httpverdict.Decider) error {
	return httpverdict.CheckNeeds(d, "nethttpmw", httpverdict.NeedWait, httpverdict.NeedRelease, httpverdict.NeedResult,
		httpverdict.NeedBody, httpverdict.NeedMark, httpverdict.NeedStale)
}

type front struct {
	decider httpverdict.Decider
	next    http.Handler
	cfg     Config
	holds   *httpverdict.Holds
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := httpverdict.FromHTTP(r)
	if err != nil {
		f.cfg.Renderer.Write(w, r, httpverdict.Malformed(err))
		return
	}
	b := bodyOf(r)
	if b != nil {
		req.Body = b
	}
	v := f.decider.Decide(r.Context(), req)
	if f.cfg.OnVerdict != nil {
		f.cfg.OnVerdict(r, v)
	}
	x := exchange{front: f, r: r, judged: req, verdict: v, body: b}
	looked := b.pass()
	if looked {
		defer b.abandon(w)
	}
	if v.Done == nil && v.Stale == nil && !x.tellsOfAsker() {
		x.apply(w)
		return
	}
	rec, w := record(w)
	x.rec, rec.r, rec.verdict = rec, r, v
	if v.Done == nil && v.Stale == nil {
		x.apply(w)
		rec.over()
		return
	}
	rec.finish = &finisher{verdict: v, ctx: r.Context(), rec: rec, body: b, head: r.Method == http.MethodHead}
	defer rec.finish.handlerOver()
	x.apply(w)
	rec.over()
	rec.finish.returned = true
}
