package resilience

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Board is where instances meet. A redisstore.Store is one.
type Board interface {
	// Beat says that the instance id lives for the ttl from now, and returns how many do, this one among them, and the notes. A
	// ttl of 0 or less says that it has gone.
	Beat(ctx context.Context, id string, ttl time.Duration) (live int, notes map[string]string, err error)
	// Note leaves a note for all for the ttl; 0 stands for ever, and a value of "" removes it.
	Note(ctx context.Context, name, value string, ttl time.Duration) error
}

// FleetConfig says how an instance shows that it lives. The zero value is ready.
type FleetConfig struct {
	// ID names this instance among all. Default: 128 random bits.
	ID string
	// Every is the time between beats, drawn anew each time within a tenth of it. Default 1 s, which is what a note takes to be
	// seen everywhere.
	Every time.Duration
	// TTL is how long after its last beat an instance still counts. Default five times Every. It outlives a store that stands
	// still for 2 s, after which a breaker gives it up: the last that is known of the fleet then has all that live. An instance
	// that counts for too long only makes the others admit less.
	TTL time.Duration
	// Timeout bounds a beat. Default: Every.
	Timeout time.Duration
	// Assume is how many instances there are until the board has said it, for a fleet that starts while its store is gone.
	// Default 1.
	Assume int
	// Random returns a number in [0, 1). Default math/rand/v2.
	Random func() float64
	// Logger is told when the board is lost and found, and of changes of the number of instances. Default: nothing is logged.
	Logger *slog.Logger
}

func (c FleetConfig) withDefaults() FleetConfig {
	if c.ID == "" {
		c.ID = rand.Text()
	}
	if c.Every <= 0 {
		c.Every = time.Second
	}
	if c.TTL <= 0 {
		c.TTL = 5 * c.Every
	}
	if c.Timeout <= 0 {
		c.Timeout = c.Every
	}
	c.Assume = max(c.Assume, 1)
	if c.Random == nil {
		c.Random = mathrand.Float64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// leaveTime bounds saying goodbye.
const leaveTime = 500 * time.Millisecond

// Fleet is this instance among all that share a store. It beats, so that the others count it, and knows how many there are,
// also after the store is gone: the last known. Make it with [NewFleet]; it is safe for concurrent use, and must be closed.
type Fleet struct {
	cfg   FleetConfig
	board Board
	notes notes

	live   atomic.Int64
	beaten atomic.Int64 // when the last beat was answered, in nanoseconds since born
	born   time.Time
	first  chan struct{} // closed when the first beat is through
	heard  atomic.Bool   // the board has been heard, and all hooks told what it says

	// Of the goroutine that beats:
	lost  bool      // the last beat failed
	fewer time.Time // since when the board has said less than Live; zero while it does not
	most  int       // the most that it has said since
	beats int       // how many were answered

	stop context.CancelFunc
	over sync.WaitGroup
	once sync.Once
}

// NewFleet joins the fleet that meets at the board, with a first beat at once. A nil board is that of an instance alone: it
// counts one, or what it is to assume, and notes go nowhere.
func NewFleet(board Board, cfg FleetConfig) *Fleet {
	f := &Fleet{cfg: cfg.withDefaults(), board: board, born: time.Now(), first: make(chan struct{})}
	f.live.Store(int64(f.cfg.Assume))
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	if board == nil {
		close(f.first)
		return f
	}
	f.over.Go(func() { f.run(ctx) })
	return f
}

// ID returns the name of this instance.
func (f *Fleet) ID() string { return f.cfg.ID }

// Live returns how many instances there are, at least 1: the most that the board has said within the last TTL that it answered.
// More are believed at once; fewer only after a TTL without a failure, since a board that has stood still, or lost its data,
// does not know all that live, and dividing by too few is what must not be. It is one atomic load.
func (f *Fleet) Live() int { return int(f.live.Load()) }

// Age returns how long ago the board was heard last, or the fleet made if it never was; 0 for an instance alone.
func (f *Fleet) Age() time.Duration {
	if f.board == nil {
		return 0
	}
	return max(0, time.Since(f.born)-time.Duration(f.beaten.Load()))
}

// Await returns once the first beat is through, answered or failed: from then on the switches and the number of the fleet are
// known if they can be. It returns the error of a context that ends before, and nil for a fleet that is closed.
func (f *Fleet) Await(ctx context.Context) error {
	select {
	case <-f.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errUnheard is the failure to say something to a board that has not been heard yet.
var errUnheard = errors.New("the store has not been heard since the start")

// hear waits for the first beat, and fails if the board has not been heard even so.
func (f *Fleet) hear(ctx context.Context) error {
	if err := f.Await(ctx); err != nil {
		return err
	}
	if !f.heard.Load() {
		return errUnheard
	}
	return nil
}

// Close leaves the fleet: the others count one less at once if the board can be reached within half a second. What the fleet has
// known it still answers.
func (f *Fleet) Close() error {
	f.once.Do(func() {
		f.stop()
		f.over.Wait()
		if f.board == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
		defer cancel()
		if _, _, err := f.board.Beat(ctx, f.cfg.ID, 0); err != nil {
			f.cfg.Logger.Debug("left the fleet without saying so", "instance", f.cfg.ID, "error", err)
		}
	})
	f.over.Wait()
	return nil
}

// run beats until the fleet is closed.
func (f *Fleet) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	through := sync.OnceFunc(func() { close(f.first) })
	defer through()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		f.beat(ctx)
		through()
		timer.Reset(f.pause())
	}
}

// pause is Every, a tenth more or less: instances that were started together do not stay together.
func (f *Fleet) pause() time.Duration {
	return time.Duration(float64(f.cfg.Every) * (0.9 + 0.2*f.cfg.Random()))
}

func (f *Fleet) beat(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	begun := f.notes.begin()
	live, notes, err := f.board.Beat(call, f.cfg.ID, f.cfg.TTL)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		f.failed(err)
		return
	}
	f.beaten.Store(int64(time.Since(f.born)))
	f.count(max(live, 1))
	f.notes.seen(begun, notes)
	f.heard.Store(true)
}

func (f *Fleet) failed(err error) {
	if !f.lost {
		f.cfg.Logger.Warn("the fleet is out of sight", "instance", f.cfg.ID, "live", f.Live(), "error", err)
	}
	f.lost, f.fewer = true, time.Time{}
}

// count takes over how many instances live.
func (f *Fleet) count(live int) {
	if f.lost {
		f.lost = false
		f.cfg.Logger.Info("the fleet is in sight again", "instance", f.cfg.ID, "live", max(live, f.Live()))
	}
	if f.beats++; f.beats == 1 || live >= f.Live() { // the first is no loss: what was assumed is not known
		f.fewer = time.Time{}
		f.change(live)
		return
	}
	now := time.Now()
	if f.fewer.IsZero() {
		f.fewer, f.most = now, 0
	}
	f.most = max(f.most, live)
	if now.Sub(f.fewer) >= f.cfg.TTL {
		f.fewer = time.Time{}
		f.change(f.most)
	}
}

func (f *Fleet) change(live int) {
	if before := int(f.live.Swap(int64(live))); before != live {
		f.cfg.Logger.Info("the fleet has changed", "instance", f.cfg.ID, "live", live, "before", before)
	}
}
