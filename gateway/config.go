package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// Defaults of Config.
const (
	DefaultMaxHeld         = 1024
	DefaultMaxConcurrent   = 16384
	DefaultMaxIdleConns    = 1024
	DefaultConnectTimeout  = 3 * time.Second
	DefaultResponseTimeout = 60 * time.Second
	DefaultAnswerIdle      = 5 * time.Minute
	DefaultTunnelIdle      = 10 * time.Minute
	DefaultStall           = 30 * time.Second
	DefaultMinRate         = 240
)

// Config says what a Gateway guards and how. Upstream, or Upstreams in its place, and Decider are required; the zero value of
// every other field is its default.
type Config struct {
	// Upstream is the service: http://HOST:PORT, https://HOST:PORT (HTTP/2 if it offers that) or h2c://HOST:PORT (HTTP/2
	// without TLS). A path is put in front of every request's path.
	Upstream string
	// Upstreams are the servers of the service if there are several, at most MaxUpstreams, each as in Upstream and with a path
	// of its own; schemes may differ. A request goes to the one of two drawn at random that has fewer requests, among those
	// that are not ejected. One whose connection cannot be made, so that nothing was sent, is tried once more at another.
	Upstreams []string
	// Ejection says when an upstream that fails gets no more requests, and when it gets some again.
	Ejection Ejection
	// Adaptive bounds the requests at each upstream by what it turns out to take; nil for no such bound.
	Adaptive *Adaptive
	// UpstreamChanged, if set, is told that an upstream is ejected or has come back, and why. The calls come one after the
	// other in the order of the changes, and hold up what they are told of: it must not block.
	UpstreamChanged func(upstream string, ejected bool, why string)
	// UpstreamTLS is for https; nil verifies the certificate against the system's roots.
	UpstreamTLS *tls.Config
	// Decider is the policy. It is refused if it needs what the gateway cannot give, see Check.
	Decider httpverdict.Decider
	// Reserved answers the paths under /_headgate/, which are never forwarded: 404, uncharged, if it is nil. The policy judges them
	// like any others. What it lets pass comes with the judged path and the headers that a service would get, and with its JudgedOf;
	// the verdict's headers are in the answer already. Such a request takes no place of MaxConcurrent, no answer to it is kept, and
	// ResponseTimeout does not bound it. With it there need not be an upstream: all else is 404 then.
	Reserved http.Handler
	// Renderer writes denials.
	Renderer httpverdict.Renderer
	// Stale keeps answers for rules that give old ones; nil stands for one with its defaults.
	Stale *stale.Cache

	// Logger gets what goes wrong; nil discards it.
	Logger *slog.Logger
	// AccessLog gets one line for each request; nil writes none.
	AccessLog *slog.Logger
	// Observe, if set, is called when a request is over, from many goroutines at a time. It must not keep the event.
	Observe func(*Event)

	// MaxHeld is how many requests may be held for the wait of a queue at a time; 0 stands for DefaultMaxHeld. Others are
	// answered 503.
	MaxHeld int
	// MaxConcurrent is how many requests, open websockets among them, may be at the service at a time; 0 stands for
	// DefaultMaxConcurrent. Others are answered 503.
	MaxConcurrent int
	// MaxRequestBody is how many bytes a request's body may have; 0 is no bound: bodies are streamed, never kept. A longer
	// one is answered 413.
	MaxRequestBody int64
	// MaxIdleConns is how many connections to each upstream are kept for later; 0 stands for DefaultMaxIdleConns.
	MaxIdleConns int

	// ConnectTimeout bounds connecting to the service, and its TLS handshake; 0 stands for DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// ResponseTimeout bounds the time from the end of a request to the header of its answer: 504 after that. 0 stands for
	// DefaultResponseTimeout, negative for no bound. The body of an answer may take any time.
	ResponseTimeout time.Duration
	// AnswerIdle is how long the service may be silent within the body of an answer whose length it has announced; then the
	// answer is broken off. 0 stands for DefaultAnswerIdle, negative for no bound. Answers of unknown length, as streams are,
	// may be silent for any time.
	AnswerIdle time.Duration
	// TunnelIdle is how long a websocket may be silent in both directions; 0 stands for DefaultTunnelIdle, negative for no
	// bound.
	TunnelIdle time.Duration
	// Stall is how long a client may keep the gateway waiting for its body, or the service may refuse to take it, beyond the
	// time that MinRate grants; 0 stands for DefaultStall.
	Stall time.Duration
	// MinRate is the rate, in bytes per second, at which a body must come in the long run; 0 stands for DefaultMinRate. A
	// slower client is answered 408.
	MinRate int64

	// KeepUnderscores forwards headers with "_" in their names. By default they are removed: CGI, WSGI and PHP take X_User_Id
	// for X-User-Id, which a policy does not.
	KeepUnderscores bool
	// Random returns a number in [0, 1) for the choice of upstreams and for jitter, from many goroutines at a time; nil stands
	// for math/rand/v2.
	Random func() float64
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&c.MaxHeld, DefaultMaxHeld)
	setDefault(&c.MaxConcurrent, DefaultMaxConcurrent)
	setDefault(&c.MaxIdleConns, DefaultMaxIdleConns)
	setDefault(&c.ConnectTimeout, DefaultConnectTimeout)
	setDefault(&c.ResponseTimeout, DefaultResponseTimeout)
	setDefault(&c.AnswerIdle, DefaultAnswerIdle)
	setDefault(&c.TunnelIdle, DefaultTunnelIdle)
	setDefault(&c.Stall, DefaultStall)
	setDefault(&c.MinRate, DefaultMinRate)
	c.Ejection = c.Ejection.withDefaults()
	if c.Adaptive != nil {
		own := c.Adaptive.withDefaults()
		c.Adaptive = &own
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c *Config) validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MaxHeld", int64(c.MaxHeld)}, {"MaxConcurrent", int64(c.MaxConcurrent)}, {"MaxRequestBody", c.MaxRequestBody},
		{"MaxIdleConns", int64(c.MaxIdleConns)}, {"ConnectTimeout", int64(c.ConnectTimeout)}, {"Stall", int64(c.Stall)},
		{"MinRate", c.MinRate},
	} {
		if f.value < 0 {
			return fmt.Errorf("gateway: Config.%s is negative; use 0 for the default", f.name)
		}
	}
	if err := c.Ejection.validate(); err != nil {
		return err
	}
	if c.Adaptive != nil {
		if err := c.Adaptive.validate(); err != nil {
			return err
		}
	}
	return Check(c.Decider)
}

// Check refuses a policy that needs what a gateway cannot give, as New does: it can do all that a policy may need of a front.
// It is for a policy that is to take the place of
// another behind the same Decider.
func Check(d httpverdict.Decider) error {
	return httpverdict.CheckNeeds(d, "gateway", httpverdict.NeedWait, httpverdict.NeedRelease, httpverdict.NeedResult,
		httpverdict.NeedBody, httpverdict.NeedMark, httpverdict.NeedStale)
}
