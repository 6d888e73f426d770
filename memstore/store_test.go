package memstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	headgate "github.com/headgate-io/headgate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newStore returns a store that is closed when the test ends.
func newStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	s := New(cfg)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// take takes charges of a limiter and fails the test on an error.
func take(t testing.TB, l headgate.Limiter, charges ...headgate.Charge) headgate.Decision {
	t.Helper()
	d, err := headgate.Take(context.Background(), l, charges...)
	if err != nil {
		t.Fatalf("Take: %v", err)
	}
	return d
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestEntryFitsItsSizeClass(t *testing.T) {
	if got := unsafe.Sizeof(entry{}); got != 96 {
		t.Errorf("an entry has %d bytes", got)
	}
}

func TestTakeDeniesWhenTheBucketIsEmpty(t *testing.T) {
	s := newStore(t, Config{})
	l := headgate.MustParseLimit("token_bucket 1/s burst=3")
	at := s.At(noon)
	for i := range 3 {
		if d := take(t, at, headgate.One("s", "k", l)); !d.Allowed || d.Outcomes[0].Remaining != int64(2-i) {
			t.Fatalf("take %d: %+v", i, d)
		}
	}
	d := take(t, at, headgate.One("s", "k", l))
	if d.Allowed || d.Outcomes[0].RetryAfter.After != time.Second {
		t.Errorf("the fourth: %+v", d)
	}
	if d := take(t, s.At(noon.Add(time.Second-time.Microsecond)), headgate.One("s", "k", l)); d.Allowed {
		t.Error("allowed a microsecond early")
	}
	if d := take(t, s.At(noon.Add(time.Second)), headgate.One("s", "k", l)); !d.Allowed {
		t.Error("denied at its retry-after")
	}
	if d := take(t, at, headgate.One("s", "other", l), headgate.One("other", "k", l)); !d.Allowed {
		t.Error("another key or slot is denied")
	}
}

func TestCodes(t *testing.T) {
	s := newStore(t, Config{})
	l := headgate.MustParseLimit("token_bucket 1/s")
	over, cancel := context.WithCancel(context.Background())
	cancel()
	closed := New(Config{})
	for range 2 {
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		ctx    context.Context
		l      headgate.Limiter
		charge headgate.Charge
		want   headgate.Code
	}{
		{"cancelled", over, s, headgate.One("s", "k", l), headgate.CodeTimeout},
		{"closed", context.Background(), closed, headgate.One("s", "k", l), headgate.CodeClosed},
		{"closed view", context.Background(), closed.At(noon), headgate.One("s", "k", l), headgate.CodeClosed},
		{"negative cost", context.Background(), s, headgate.Charge{Limit: l, Cost: -1}, headgate.CodeInvalidCost},
		{"no limit", context.Background(), s, headgate.Charge{Cost: 1}, headgate.CodeInvalidLimit},
		{"far time", context.Background(), s.At(time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)), headgate.One("s", "k", l), headgate.CodeInvalidTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := headgate.Decision{Allowed: true, Outcomes: make([]headgate.Outcome, 3)}
			err := c.l.Take(c.ctx, []headgate.Charge{c.charge}, &d)
			if headgate.CodeOf(err) != c.want {
				t.Errorf("error %v, want code %s", err, c.want)
			}
			if d.Allowed || len(d.Outcomes) != 0 {
				t.Errorf("the decision is %+v after an error", d)
			}
		})
	}
	if err := s.Take(over, nil, &headgate.Decision{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", err)
	}
	if d := take(t, s, headgate.One("s", "k", l)); !d.Allowed {
		t.Error("a cancelled take was charged")
	}
}

func TestManyTakersNeverGetMoreThanTheLimit(t *testing.T) {
	s := newStore(t, Config{})
	one := headgate.MustParseLimit("fixed_window 100/1000d")
	other := headgate.MustParseLimit("token_bucket 1/100d burst=150")
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := map[string]int{}
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				key := fmt.Sprint("k", i%3)
				charges := []headgate.Charge{headgate.One("a", key, one), headgate.One("b", "all", other)}
				if g%2 == 0 {
					charges[0], charges[1] = charges[1], charges[0]
				}
				d, err := headgate.Take(context.Background(), s, charges...)
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					mu.Lock()
					allowed[key]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for key, n := range allowed {
		if sum += n; n > 100 {
			t.Errorf("%s: %d allowed of 100", key, n)
		}
	}
	if sum != 150 {
		t.Errorf("%d allowed in all, want the 150 of the shared limit", sum)
	}
}
