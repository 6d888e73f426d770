package nethttpmw

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// DefaultMaxHeld is how many requests are held for a wait at a time unless Config says otherwise.
const DefaultMaxHeld = 1024

// Config shapes the middleware. The zero value is ready to use.
type Config struct {
	// MaxHeld is how many requests may be held for the wait of a queue at a time; further ones are answered 503. Each costs a
	// goroutine. 0 stands for DefaultMaxHeld.
	MaxHeld int
	// Renderer writes the answers; the zero value uses the runtime's clock and random source.
	Renderer httpverdict.Renderer
	// OnVerdict, if set, is called with every verdict before it is applied, from many goroutines at a time. It must not keep
	// or change the verdict.
	OnVerdict func(*http.Request, *httpverdict.Verdict)
}

// New returns a middleware that applies the verdicts of a decider. It refuses a nil decider and one whose policy needs what
// the middleware cannot give: it can wait and release. The middleware is safe for concurrent use, also over several
// handlers.
func New(d httpverdict.Decider, cfg Config) (func(http.Handler) http.Handler, error) {
	if err := httpverdict.CheckNeeds(d, "nethttpmw", httpverdict.NeedWait, httpverdict.NeedRelease); err != nil {
		return nil, err
	}
	if cfg.MaxHeld < 0 {
		return nil, errors.New("nethttpmw: Config.MaxHeld is negative; use 0 for the default")
	}
	if cfg.MaxHeld == 0 {
		cfg.MaxHeld = DefaultMaxHeld
	}
	holds := httpverdict.NewHolds(cfg.MaxHeld)
	return func(next http.Handler) http.Handler {
		return &front{decider: d, next: next, cfg: cfg, holds: holds}
	}, nil
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
	v := f.decider.Decide(r.Context(), req)
	if f.cfg.OnVerdict != nil {
		f.cfg.OnVerdict(r, v)
	}
	r = withPath(r, req.Path)
	if v.Done == nil {
		f.apply(w, r, v)
		return
	}
	rec, w := record(w)
	rec.finish = &finisher{verdict: v, ctx: r.Context(), rec: rec, head: r.Method == http.MethodHead}
	defer rec.finish.handlerOver()
	f.apply(w, r, v)
	rec.finish.returned = true
}

func (f *front) apply(w http.ResponseWriter, r *http.Request, v *httpverdict.Verdict) {
	if !v.Allowed() {
		f.cfg.Renderer.Write(w, r, v)
		return
	}
	if err := f.holds.Wait(r.Context(), v.Wait); err != nil {
		// Too many are held, or the client has left; in case it was somebody else who ended the context, this is no success.
		f.cfg.Renderer.Write(w, r, v.Overload())
		return
	}
	f.cfg.Renderer.SetHeaders(w.Header(), v)
	f.next.ServeHTTP(w, r)
}

// withPath returns the request with the path that was judged, the request itself if that is its path already.
func withPath(r *http.Request, clean string) *http.Request {
	if clean == "*" || r.URL.RawPath == "" && r.URL.Path == clean {
		return r
	}
	u := *r.URL
	if err := httpverdict.SetPath(&u, clean); err != nil {
		return r // cannot be: the path comes from CleanPath
	}
	if plain := (&url.URL{Path: u.Path}); plain.EscapedPath() == u.RawPath {
		u.RawPath = "" // as net/http has it where the default encoding says the same
	}
	out := *r
	out.URL = &u
	return &out
}
