package saleadmin

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// Sales is what can be done with sales; *engine.Engine is one.
type Sales interface {
	Catalog
	Statuses
	Commands
	Care
}

// Catalog tells what there is.
type Catalog interface {
	Instance() string
	SalesAfter(ctx context.Context, after string, limit int) ([]flashsale.Sale, []flashsale.SKUState, error)
	Sale(ctx context.Context, id string) (*flashsale.Sale, error)
	SKU(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error)
	SKUs(ctx context.Context) ([]flashsale.SKUState, error)
	Look(ctx context.Context, key flashsale.Key) (*engine.Look, error)
	Operations(ctx context.Context, key flashsale.Key, limit int) ([]flashsale.Operation, error)
	Alarms() []engine.AlarmOn
}

// Statuses are the ways from one status of a sale to another.
type Statuses interface {
	OpenSale(ctx context.Context, c engine.Command) ([]flashsale.Operation, error)
	PauseSale(ctx context.Context, c engine.Command) ([]flashsale.Operation, error)
	ResumeSale(ctx context.Context, c engine.Command) ([]flashsale.Operation, error)
	DrainSale(ctx context.Context, c engine.Command) ([]flashsale.Operation, error)
	CloseSale(ctx context.Context, c engine.Command) ([]flashsale.Operation, error)
}

// Commands are what operators order besides.
type Commands interface {
	CreateSale(ctx context.Context, s *flashsale.Sale) error
	DropSale(ctx context.Context, c engine.Command) error
	SetRate(ctx context.Context, c engine.Command, rate int64) ([]flashsale.Operation, error)
	TopUp(ctx context.Context, c engine.Command, units int64) (*flashsale.Operation, error)
	Withdraw(ctx context.Context, c engine.Command, units int64) (*flashsale.Operation, error)
	Rebuild(ctx context.Context, c engine.Command) ([]flashsale.Operation, error)
	ReviveDead(ctx context.Context, key flashsale.Key, ids []string) (int, error)
	MatchOnce(ctx context.Context, since time.Time) (engine.MatchReport, error)
}

// Care is what is looked at when something is wrong, or before it is.
type Care interface {
	Preflight(ctx context.Context) ([]engine.Finding, error)
	PlanRebuild(ctx context.Context, key flashsale.Key) (*engine.RebuildPlan, error)
	DeadLetters(ctx context.Context, key flashsale.Key, limit int) ([]flashsale.DeadJob, error)
	Story(ctx context.Context, sale, user string) ([]engine.Chapter, error)
	Refusals(ctx context.Context, sale, user string) engine.Refusals
	LastReconciliation() *engine.ReconcileReport
	Audit(ctx context.Context, key flashsale.Key) (*engine.AuditReport, error)
}

// Config says what is looked after and who may. Sales and Actor have no default.
type Config struct {
	Sales Sales
	// Actor tells who makes a request; false is nobody, who is answered 401.
	Actor func(*http.Request) (Actor, bool)
	// Logger gets one line for each change and each refused one. Default: nothing is logged.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// MaxSlow bounds the requests at a time that read a lot or take long: reports, stories, matches, checks and rebuilds. Default 4.
	MaxSlow int
}

// Prefix is the path of the API: all of it is this path, or below it.
const Prefix = "/sales"

// New returns a handler for all that is under Prefix. It is safe for concurrent use and starts no goroutine.
func New(cfg Config) (http.Handler, error) {
	switch {
	case cfg.Sales == nil:
		return nil, errors.New("saleadmin: Config.Sales is missing")
	case cfg.Actor == nil:
		return nil, errors.New("saleadmin: Config.Actor is missing")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxSlow <= 0 {
		cfg.MaxSlow = 4
	}
	a := &api{cfg: cfg, sales: cfg.Sales, slow: make(chan struct{}, cfg.MaxSlow)}
	return a.handler(), nil
}

// api answers requests.
type api struct {
	cfg   Config
	sales Sales
	// slow has an element for each slow request under way.
	slow chan struct{}
}

// newOperationID names an operation that its caller has not named.
func newOperationID() string { return "op." + rand.Text() }
