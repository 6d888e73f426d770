package salehttp

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// Prefix is what all paths begin with.
const Prefix = "/_headgate/sales"

// Sales is what can be done with sales; *engine.Engine is one, and its words are what is meant here. Implementations are safe for concurrent
// use.
type Sales interface {
	Shelf
	Counter
	Till
}

// Shelf is what shoppers may see. Its methods cost little however often they are called.
type Shelf interface {
	Showcase(ctx context.Context) ([]engine.ShownSale, error)
	Shown(ctx context.Context, sale string) (*engine.ShownSale, error)
	CheckShown(ctx context.Context, key flashsale.Key) error
}

// Counter is where units are reserved.
type Counter interface {
	Token(ctx context.Context, r engine.TokenRequest) (token string, expires time.Time, err error)
	Reserve(ctx context.Context, r engine.ReserveRequest) (engine.ReserveAnswer, error)
	Result(ctx context.Context, key flashsale.Key, rid, user string) (engine.Result, error)
	Follow(ctx context.Context, key flashsale.Key, rid, user string, last engine.Result) (engine.Result, error)
	Orders(ctx context.Context, sale, user string) ([]engine.Result, error)
}

// Till is where they are paid for, or given back.
type Till interface {
	Pay(ctx context.Context, rid, user string) (engine.PayAnswer, error)
	Cancel(ctx context.Context, rid, user string) (engine.Result, error)
	Webhook(ctx context.Context, header map[string][]string, body []byte) error
}

// Shopper is who sends a request.
type Shopper struct {
	// User, 1 to 255 bytes of any kind, is who it is, as the caller has made sure.
	User string
	// Device, at most 255 bytes, is what from; order tokens are good for it alone. "" does not matter.
	Device string
}

// Identity finds out who sends a request. An error, or a User that is "" or longer than 255 bytes, is nobody who is signed in: 401. It must
// take nothing that a client can forge.
type Identity func(r *http.Request) (Shopper, error)

// Config is what a Handler is made of. Sales and Identity are needed; every other field has a default.
type Config struct {
	Sales    Sales
	Identity Identity
	// Limiter spends one-use tickets, over all instances if they share it. Default: the memory of this process, so that a ticket can be
	// used once at each instance.
	Limiter headgate.Limiter
	// Keys seal tickets. Default: a random key of this process, so that a ticket is good at the instance that issued it.
	Keys *flashsale.TokenKeys
	// Origins are other origins, such as "https://shop.example.com", whose pages may send requests with cookies and read the answers. Default
	// none: pages of the host that the request is sent to alone.
	Origins []string
	// Now is the clock that shoppers are told; it should be that of the engine. Default time.Now.
	Now func() time.Time
	// Rand is where tickets come from. Default crypto/rand.Reader.
	Rand io.Reader
	// Random returns a number in [0, 1), for jitter. Default math/rand/v2.
	Random func() float64
	// Logger gets what goes wrong inside. Default: nothing is logged.
	Logger *slog.Logger
	// MaxStreams bounds the event streams at a time, MaxStreamsPerUser those of one user. One more is answered 429. Defaults 10,000 and 4.
	MaxStreams, MaxStreamsPerUser int
	// StreamLife is how long an event stream lasts at most; its client comes back for the next one. Default 2 min.
	StreamLife time.Duration
	// Heartbeat is the time between two comments in a stream in which nothing happens. Default 15 s.
	Heartbeat time.Duration
	// WriteTimeout is how long each write of a stream may take; who takes nothing for so long is dropped. Default 10 s.
	WriteTimeout time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Keys == nil {
		secret := make([]byte, flashsale.MinKeyBytes)
		if _, err := io.ReadFull(rand.Reader, secret); err != nil {
			return c, configError("no randomness for a key: %v", err)
		}
		var err error
		if c.Keys, err = flashsale.NewTokenKeys(flashsale.TokenKey{ID: "process", Secret: secret}); err != nil {
			return c, err
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Random == nil {
		c.Random = mathrand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for field, fallback := range map[*int]int{&c.MaxStreams: 10_000, &c.MaxStreamsPerUser: 4} {
		if *field == 0 {
			*field = fallback
		}
	}
	for field, fallback := range map[*time.Duration]time.Duration{&c.StreamLife: 2 * time.Minute, &c.Heartbeat: 15 * time.Second, &c.WriteTimeout: 10 * time.Second} {
		if *field == 0 {
			*field = fallback
		}
	}
	c.Origins = slices.Clone(c.Origins)
	return c, nil
}

func (c *Config) validate() error {
	switch {
	case c.Sales == nil:
		return configError("Config.Sales is missing")
	case c.Identity == nil:
		return configError("Config.Identity is missing")
	case c.MaxStreams < 0 || c.MaxStreamsPerUser < 0:
		return configError("Config.MaxStreams and MaxStreamsPerUser are at least 1, or 0 for the default")
	case c.StreamLife < 0 || c.Heartbeat < 0 || c.WriteTimeout < 0:
		return configError("Config.StreamLife, Heartbeat and WriteTimeout are above 0, or 0 for the default")
	}
	return nil
}

func configError(format string, args ...any) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "salehttp: " + fmt.Sprintf(format, args...)}
}
