package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Defaults of ServerConfig.
const (
	DefaultHeaderTimeout  = 10 * time.Second
	DefaultIdleTimeout    = 75 * time.Second
	DefaultMaxHeaderBytes = 64 << 10
	DefaultMaxConns       = 32768
	DefaultMaxStreams     = 128
	DefaultDrainTimeout   = 30 * time.Second
)

// ServerConfig says how a Server serves. Handler is required; the zero value of every other field is its default.
type ServerConfig struct {
	// Handler is a Gateway, or any handler around one.
	Handler http.Handler
	// TLS has the certificates to serve with; nil serves without TLS. HTTP/2 is offered in both cases: by ALPN, and without
	// TLS to clients that begin with it (h2c with prior knowledge).
	TLS *tls.Config
	// Logger gets what goes wrong; nil discards it.
	Logger *slog.Logger
	// HeaderTimeout bounds the time that a client takes for the header of a request and for a TLS handshake; 0 stands for
	// DefaultHeaderTimeout.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection may stay without a request; 0 stands for DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds the header of a request; 0 stands for DefaultMaxHeaderBytes. A larger one is answered 431.
	MaxHeaderBytes int
	// MaxConns bounds the connections; 0 stands for DefaultMaxConns. Further ones wait to be accepted.
	MaxConns int
	// MaxStreams bounds the requests at a time on one HTTP/2 connection; 0 stands for DefaultMaxStreams.
	MaxStreams int
	// Stall and MinRate bound how slowly a client may take answers, as those of Config do for the bodies of requests; 0
	// stands for DefaultStall and DefaultMinRate.
	Stall   time.Duration
	MinRate int64
	// DrainTimeout is how long requests that are under way may go on when the server stops; 0 stands for
	// DefaultDrainTimeout, negative cuts them at once.
	DrainTimeout time.Duration
}

func (c ServerConfig) withDefaults() ServerConfig {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&c.HeaderTimeout, DefaultHeaderTimeout)
	setDefault(&c.IdleTimeout, DefaultIdleTimeout)
	setDefault(&c.MaxHeaderBytes, DefaultMaxHeaderBytes)
	setDefault(&c.MaxConns, DefaultMaxConns)
	setDefault(&c.MaxStreams, DefaultMaxStreams)
	setDefault(&c.Stall, DefaultStall)
	setDefault(&c.MinRate, DefaultMinRate)
	setDefault(&c.DrainTimeout, DefaultDrainTimeout)
	return c
}

func (c *ServerConfig) validate() error {
	if c.Handler == nil {
		return errors.New("gateway: ServerConfig.Handler is nil")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"HeaderTimeout", int64(c.HeaderTimeout)}, {"IdleTimeout", int64(c.IdleTimeout)}, {"MaxHeaderBytes", int64(c.MaxHeaderBytes)},
		{"MaxConns", int64(c.MaxConns)}, {"MaxStreams", int64(c.MaxStreams)}, {"Stall", int64(c.Stall)}, {"MinRate", c.MinRate},
	} {
		if f.value < 0 {
			return fmt.Errorf("gateway: ServerConfig.%s is negative; use 0 for the default", f.name)
		}
	}
	return nil
}

// Server serves HTTP/1.1 and HTTP/2 with bounds against slow and greedy clients, and stops without hurting those it
// serves.
type Server struct {
	cfg ServerConfig
}

// NewServer returns a Server; Run starts it.
func NewServer(cfg ServerConfig) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Server{cfg: cfg}, nil
}

// Run serves the listener until ctx ends. Then it accepts no more, lets requests that are under way finish within the
// drain timeout, cuts what is left, websockets among it, and returns nil when all of it has ended. It closes the listener.
// An error says why it could not serve. It may be called for several listeners.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	requests := newTally()
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := s.httpServer(base, requests)
	failed := make(chan error, 1)
	go func() {
		guarded := newGuardedListener(l, &s.cfg)
		if s.cfg.TLS != nil {
			failed <- server.ServeTLS(guarded, "", "")
			return
		}
		failed <- server.Serve(guarded)
	}()
	select {
	case err := <-failed:
		cut()
		server.Close()
		<-requests.none()
		return fmt.Errorf("gateway: serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.drain(server, requests, cut)
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("gateway: serve %s: %w", l.Addr(), err)
	}
	return nil
}

func (s *Server) httpServer(base context.Context, requests *tally) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(s.cfg.TLS == nil)
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.add(1)
			defer requests.add(-1)
			s.cfg.Handler.ServeHTTP(w, r)
		}),
		Protocols:         protocols,
		TLSConfig:         s.cfg.TLS.Clone(),
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    s.cfg.MaxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: s.cfg.MaxStreams,
			SendPingTimeout:      s.cfg.Stall,
			PingTimeout:          s.cfg.HeaderTimeout,
		},
		ConnContext: withConn,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug), // what clients do wrong
	}
}

// drain waits for requests, those that have taken over their connection too, and then cuts.
func (s *Server) drain(server *http.Server, requests *tally, cut func()) {
	limit, stop := context.WithTimeout(context.Background(), max(s.cfg.DrainTimeout, 0))
	defer stop()
	_ = server.Shutdown(limit) // fails when the time is up, which is seen below
	select {
	case <-requests.none():
	case <-limit.Done():
		if n := requests.count(); n > 0 {
			s.cfg.Logger.Warn("requests are cut: the drain timeout is over", slog.Int("requests", n), slog.Duration("timeout", s.cfg.DrainTimeout))
		}
	}
	cut()
	server.Close()
	select {
	case <-requests.none():
	case <-time.After(closingTime): // a handler that does not mind its context
	}
}

// tally counts requests under way, and tells when there are none.
type tally struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed while n is 0
}

func newTally() *tally {
	t := &tally{empty: make(chan struct{})}
	close(t.empty)
	return t
}

func (t *tally) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 {
		t.empty = make(chan struct{})
	}
	if t.n += n; t.n == 0 {
		close(t.empty)
	}
}

func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

func (t *tally) none() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.empty
}
