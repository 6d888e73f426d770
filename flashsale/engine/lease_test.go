package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// leaseBook has leases, and nothing to do for any job.
type leaseBook struct {
	flashsale.Orders
	mu     sync.Mutex
	leases map[string]heldLease
	// broken are the holders that SQL does not answer.
	broken func(holder string) error
}

type heldLease struct {
	holder string
	fence  int64
	until  time.Time
}

func newLeaseBook() *leaseBook { return &leaseBook{leases: map[string]heldLease{}} }

func (b *leaseBook) Lease(_ context.Context, name, holder string, ttl time.Duration) (int64, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		if err := b.broken(holder); err != nil {
			return 0, false, err
		}
	}
	l := b.leases[name]
	if l.holder != holder {
		if time.Now().Before(l.until) {
			return l.fence, false, nil
		}
		l.holder, l.fence = holder, l.fence+1
	}
	l.until = time.Now().Add(ttl)
	b.leases[name] = l
	return l.fence, true, nil
}

func (b *leaseBook) Release(_ context.Context, name, holder string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.leases[name]; l.holder == holder {
		l.holder, l.until = "", time.Time{}
		b.leases[name] = l
	}
	return nil
}

// steal gives a lease to somebody else.
func (b *leaseBook) steal(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leases[name] = heldLease{"thief", b.leases[name].fence + 1, time.Now().Add(time.Hour)}
}

func (b *leaseBook) breakFor(f func(holder string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = f
}

func (b *leaseBook) SKUs(context.Context) ([]flashsale.SKUState, error) { return nil, nil }
func (b *leaseBook) Retirable(context.Context, flashsale.Key, int) ([]flashsale.SKUState, error) {
	return nil, nil
}
func (b *leaseBook) Dropped(context.Context, time.Duration, flashsale.DroppedSKU, int) ([]flashsale.DroppedSKU, error) {
	return nil, nil
}
func (b *leaseBook) Unsent(context.Context, flashsale.Lane, time.Duration, int64, int) ([]flashsale.Event, error) {
	return nil, nil
}
func (b *leaseBook) Expiring(context.Context, int) ([]flashsale.Reservation, error) { return nil, nil }
func (b *leaseBook) OpenOperations(context.Context, string, int) ([]flashsale.Operation, string, error) {
	return nil, "", nil
}
func (b *leaseBook) PruneOutbox(context.Context, time.Duration, int) (int64, error) { return 0, nil }
func (b *leaseBook) PruneEvents(context.Context, time.Duration, int) (int64, error) { return 0, nil }
func (b *leaseBook) Sent(context.Context, flashsale.Lane, int64, []int64) error     { return nil }

// jobsSeen remembers which jobs ran.
type jobsSeen struct {
	nobody
	mu    sync.Mutex
	runs  []jobRun
	leads map[string]bool
}

type jobRun struct {
	name, code string
	at         time.Time
}

func (s *jobsSeen) Job(name string, _ int, _ time.Duration, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, jobRun{name, code, time.Now()})
}

func (s *jobsSeen) Leased(name string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leads == nil {
		s.leads = map[string]bool{}
	}
	s.leads[name] = held
}

// leading returns how many leases it was last told to have.
func (s *jobsSeen) leading() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, held := range s.leads {
		if held {
			n++
		}
	}
	return n
}

// of returns when a job ran.
func (s *jobsSeen) of(name string) (at []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.name == name {
			at = append(at, r.at)
		}
	}
	return at
}

func leaseEngine(t *testing.T, b *leaseBook, instance string) (*Engine, *jobsSeen) {
	t.Helper()
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k", Secret: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	seen := &jobsSeen{}
	e, err := New(Config{Stock: struct{ Stock }{}, Orders: b, Keys: keys, Instance: instance, Observer: seen})
	if err != nil {
		t.Fatal(err)
	}
	return e, seen
}

func TestLeaseIsKeptAndGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLeaseBook()
		one, _ := leaseEngine(t, b, "one")
		two, _ := leaseEngine(t, b, "two")
		held, err := one.underLease(t.Context(), "sale/x", func(ctx context.Context, fence int64) error {
			for range 10 {
				time.Sleep(7 * time.Second)
				if held, err := two.underLease(ctx, "sale/x", func(context.Context, int64) error { return nil }); held || err != nil {
					t.Errorf("another has it too: %v, %v", held, err)
				}
			}
			if fence != 1 {
				t.Errorf("fence %d", fence)
			}
			return ctx.Err()
		})
		if !held || err != nil {
			t.Fatalf("held %v: %v", held, err)
		}
		held, err = two.underLease(t.Context(), "sale/x", func(_ context.Context, fence int64) error {
			if fence != 2 {
				t.Errorf("the next one has the fence %d", fence)
			}
			return nil
		})
		if !held || err != nil {
			t.Errorf("it was not given back: %v, %v", held, err)
		}
	})
}

// TestLeaseHasOneUserInAProcess: two users of one engine are two holders.
func TestLeaseHasOneUserInAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := leaseEngine(t, newLeaseBook(), "one")
		_, err := e.underLease(t.Context(), "sale/x", func(ctx context.Context, _ int64) error {
			held, err := e.underLease(ctx, "sale/x", func(context.Context, int64) error { return nil })
			if held {
				t.Error("two of one process have it")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestLeaseLost: whoever cannot renew stops before the database gives the lease away, and whoever has lost it stops at the next renewal.
func TestLeaseLost(t *testing.T) {
	down := errors.New("no route")
	for what, c := range map[string]struct {
		lose func(b *leaseBook)
		by   time.Duration
	}{
		"SQL does not answer": {func(b *leaseBook) { b.breakFor(func(string) error { return down }) }, 5 * time.Second},
		"another has it":      {func(b *leaseBook) { b.steal("sale/x") }, 5 * time.Second / 3},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newLeaseBook()
				e, _ := leaseEngine(t, b, "one")
				began := time.Now()
				_, err := e.underLease(t.Context(), "sale/x", func(ctx context.Context, _ int64) error {
					c.lose(b)
					<-ctx.Done()
					return ctx.Err()
				})
				wantCode(t, "the job", err, flashsale.CodeFenced)
				if took := time.Since(began); took > c.by+time.Microsecond {
					t.Errorf("it went on for %s", took)
				}
			})
		})
	}
}

// TestLeaseOutlastsASilence: a database that is away for less than the lease costs nothing.
func TestLeaseOutlastsASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLeaseBook()
		e, _ := leaseEngine(t, b, "one")
		held, err := e.underLease(t.Context(), "sale/x", func(ctx context.Context, _ int64) error {
			b.breakFor(func(string) error { return errors.New("no route") })
			time.Sleep(4 * time.Second)
			b.breakFor(nil)
			time.Sleep(time.Minute)
			return ctx.Err()
		})
		if !held || err != nil {
			t.Errorf("held %v: %v", held, err)
		}
	})
}

// TestASilenceIsLoggedOnce: an hour without SQL is a line for each job, and not one for each time that it was asked; the next silence is told again.
func TestASilenceIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLeaseBook()
		e, _ := leaseEngine(t, b, "one")
		var log bytes.Buffer // read when nothing runs
		e.log = slog.New(slog.NewTextHandler(&log, nil))
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		lines := func() int {
			synctest.Wait()
			return strings.Count(log.String(), "a job's lease cannot be asked for")
		}
		jobs := len(e.jobs())
		b.breakFor(func(string) error { return errors.New("no route") })
		running.Go(func() { _ = e.Run(ctx) })
		time.Sleep(time.Hour)
		first := lines()
		b.breakFor(nil)
		time.Sleep(time.Minute)
		healed := lines()
		b.breakFor(func(string) error { return errors.New("no route") })
		time.Sleep(time.Hour)
		again := lines() - healed
		end()
		running.Wait()
		// The second time each job has lost its lease first, which is another error.
		if first != jobs || healed != jobs || again < jobs || again > 2*jobs {
			t.Errorf("%d lines of %d jobs, %d when it was back, then %d more:\n%.2000s", first, jobs, healed, again, log.String())
		}
	})
}

// TestJobsMoveToWhoeverLives: each job runs at one instance; when that dies without a word, another has it within a lease and a third.
func TestJobsMoveToWhoeverLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLeaseBook()
		one, seenOne := leaseEngine(t, b, "one")
		two, seenTwo := leaseEngine(t, b, "two")
		ctxOne, killOne := context.WithCancel(t.Context())
		ctxTwo, endTwo := context.WithCancel(t.Context())
		defer endTwo()
		var running sync.WaitGroup
		running.Go(func() { _ = one.Run(ctxOne) })
		synctest.Wait()
		running.Go(func() { _ = two.Run(ctxTwo) })
		time.Sleep(10 * time.Second)
		if n := len(seenOne.of("sweep")); n < 10 {
			t.Errorf("one has swept %d times in 10 s", n)
		}
		if n := len(seenTwo.of("sweep")); n != 0 {
			t.Errorf("two has swept %d times meanwhile", n)
		}
		if a, b := seenOne.leading(), seenTwo.leading(); a != 5 || b != 0 {
			t.Errorf("one is told to have %d leases, two %d; want 5 and none", a, b)
		}
		// One dies: nothing of it comes to SQL any more, not even that it gives its leases back.
		b.breakFor(func(holder string) error {
			if holder[:3] == "one" {
				return errors.New("dead")
			}
			return nil
		})
		died := time.Now()
		b.mu.Lock()
		for name, l := range b.leases {
			l.holder += "'" // so that a release does not find it
			b.leases[name] = l
		}
		b.mu.Unlock()
		killOne()
		time.Sleep(10 * time.Second)
		for _, name := range []string{"deliver", "sweep", "watch", "reconcile"} {
			at := seenTwo.of(name)
			if len(at) == 0 || at[0].Sub(died) > 7*time.Second {
				t.Errorf("%s was not taken over within 7 s: %v after", name, at)
			}
		}
		if a, b := seenOne.leading(), seenTwo.leading(); a != 0 || b != 5 {
			t.Errorf("after its death one is told to have %d leases, two %d; want none and 5", a, b)
		}
		endTwo()
		running.Wait()
		if n := seenTwo.leading(); n != 0 {
			t.Errorf("at its end two is told to have %d leases", n)
		}
		if last := slices.MaxFunc(seenOne.of("sweep"), time.Time.Compare); last.After(died) {
			t.Error("the dead one goes on")
		}
	})
}

// TestJobPanics: a panic is told as an error of the job, and the job goes on.
func TestJobPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, seen := leaseEngine(t, newLeaseBook(), "one")
		ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
		defer cancel()
		e.runJob(ctx, &job{name: "x", every: time.Second, once: func(context.Context) (int, error) { panic("a fault") }})
		if len(seen.runs) != 6 {
			t.Errorf("it ran %d times in 5.5 s", len(seen.runs))
		}
		for _, r := range seen.runs {
			if r.code != "internal" {
				t.Errorf("told as %q", r.code)
			}
		}
	})
}

func TestOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := leaseEngine(t, newLeaseBook(), "one")
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- e.Run(ctx) }()
		synctest.Wait()
		wantCode(t, "a second Run", e.Run(ctx), flashsale.CodeInvalidState)
		cancel()
		if err := <-first; err != nil {
			t.Error(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Run(ctx); err != nil {
			t.Errorf("a Run after the first has ended: %v", err)
		}
	})
}
