package engine

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Stock is all that a store of stock can do.
type Stock interface {
	flashsale.Stock
	flashsale.Queue
	flashsale.Loader
}

// Config is what an Engine is made of. Stock, Orders and Keys are needed; every other field has a default.
type Config struct {
	Stock  Stock
	Orders flashsale.Orders
	// Keys sign order tokens.
	Keys *flashsale.TokenKeys
	// Payments is the provider. Without one nothing can be paid.
	Payments flashsale.Payments
	// Relay carries events to other services. Without one they count as sent, and are kept in the outbox until they are pruned.
	Relay flashsale.Relay
	// Instance names this process among all; two must not share one. Default: random.
	Instance string
	// Now is the clock of this process. Default time.Now.
	Now func() time.Time
	// Rand is where nonces and jitter come from. Default crypto/rand.Reader.
	Rand io.Reader
	// Logger gets what an engineer on call should know. Default: nothing is logged.
	Logger *slog.Logger
	// Observer is told what happens. Default: nobody.
	Observer Observer
	// TokenLife is how long an order token lives, at most flashsale.MaxTokenLife. Default 2 min.
	TokenLife time.Duration
	// MaxWaiting bounds the calls of Await at a time; more are refused as busy. Default 10,000.
	MaxWaiting int
	// MaxRefusals bounds how many refusals this instance remembers, for [Engine.Refusals]; about 250 bytes each. Default 65,536.
	MaxRefusals int
	// RefusalLog is where all instances write what they refuse, and read what the others have. Default: the Stock, if it is one; else each
	// instance knows its own alone.
	RefusalLog flashsale.RefusalLog
	// AskAlways has the Stock asked for every reserve call. Default: once a sku is sold out that is answered from memory, as right
	// as the Stock would, and no call reaches it but those of who holds something; what comes back is sold within 100 ms.
	AskAlways bool
	// Consumers says how jobs are decided.
	Consumers Consumers
	// Jobs says how often the sweeper and the others run.
	Jobs Jobs
	// Paying says how the provider is asked.
	Paying Paying
}

// Engine runs sales. It is safe for concurrent use.
type Engine struct {
	cfg      Config
	stock    Stock
	orders   flashsale.Orders
	payments flashsale.Payments
	log      *slog.Logger
	observer Observer
	random   *lockedReader
	skus     *skuCache
	rows     *gather[string, *flashsale.Reservation]
	entries  *gather[reservationID, entryAnswer]
	waiters  *waiters
	told     *tellings
	board    *board
	measured *measures
	relaying *relaying
	running  sync.WaitGroup
	paying   *paying
	care     *care
	soldOut  soldOut
	refusals *journal
	// refusalLog takes over what the journal has, for all instances.
	refusalLog *refusalLog
	alarms     *alarmBook
	showcase   *showcase
}

// New makes an engine that runs nothing yet: its methods work, and Run starts consumers and jobs.
func New(cfg Config) (*Engine, error) {
	switch {
	case cfg.Stock == nil:
		return nil, missing("Stock")
	case cfg.Orders == nil:
		return nil, missing("Orders")
	case cfg.Keys == nil:
		return nil, missing("Keys")
	}
	cfg = cfg.withDefaults()
	refusalLog := newRefusalLog(cfg.RefusalLog, cfg.Rand, cfg.Observer)
	told := newAlarmBook(cfg.Observer, cfg.Now, cfg.Logger)
	cfg.Observer = told
	e := &Engine{
		cfg: cfg, stock: cfg.Stock, orders: cfg.Orders, payments: cfg.Payments, log: cfg.Logger, observer: cfg.Observer,
		random: &lockedReader{from: cfg.Rand}, skus: newSKUCache(cfg.Orders), waiters: newWaiters(cfg.MaxWaiting), told: &tellings{},
		board: newBoard(cfg.Consumers.Idle), measured: newMeasures(), paying: newPaying(cfg.Observer), care: newCare(),
		relaying: newRelaying(), refusals: newJournal(cfg.MaxRefusals, cfg.Now(), cfg.RefusalLog != nil), refusalLog: refusalLog, alarms: told,
	}
	e.showcase = newShowcase(e)
	e.rows = newGather(lookups, lookupBatch, e.rowsOf)
	e.entries = newGather(lookups, lookupBatch, e.readEntries)
	return e, nil
}

func missing(field string) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "engine: Config." + field + " is missing"}
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Instance == "" {
		var id [8]byte
		_, _ = io.ReadFull(c.Rand, id[:])
		c.Instance = hex.EncodeToString(id[:])
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.TokenLife <= 0 {
		c.TokenLife = 2 * time.Minute
	}
	c.TokenLife = min(c.TokenLife, flashsale.MaxTokenLife)
	if c.MaxWaiting <= 0 {
		c.MaxWaiting = 10_000
	}
	if c.MaxRefusals <= 0 {
		c.MaxRefusals = 1 << 16
	}
	if log, ok := c.Stock.(flashsale.RefusalLog); ok && c.RefusalLog == nil {
		c.RefusalLog = log
	}
	c.Consumers = c.Consumers.withDefaults()
	c.Jobs = c.Jobs.withDefaults()
	c.Paying = c.Paying.withDefaults()
	return c
}
