package simpay

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/flashsale"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a provider at virtual time, and what its receiver got.
type bench struct {
	*Provider
	t    *testing.T
	now  time.Time
	mu   sync.Mutex // guards got
	got  []*flashsale.ProviderEvent
	fail int // how many of the next webhooks are refused
}

func newBench(t *testing.T, seed uint64, cfg Config) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Unix(1_800_000_000, 0)}
	cfg.Now = func() time.Time { return b.now }
	cfg.Rand = rand.New(rand.NewPCG(seed, 1))
	cfg.Secrets = [][]byte{[]byte("a secret of the tests")}
	cfg.Deliver = b.receive
	b.Provider = New(cfg)
	return b
}

func (b *bench) receive(_ context.Context, header http.Header, body []byte) error {
	event, err := b.Webhook(header, body)
	if err != nil {
		b.t.Errorf("a webhook is refused by its own provider: %v", err)
	}
	if b.fail > 0 {
		b.fail--
		return errors.New("refused")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, event)
	return nil
}

// pass lets time pass, step by step.
func (b *bench) pass(d time.Duration) {
	end := b.now.Add(d)
	for {
		_, next := b.Step(b.t.Context())
		if next.IsZero() || next.After(end) {
			b.now = end
			return
		}
		b.now = next
	}
}

func (b *bench) create(key string) {
	b.t.Helper()
	in := flashsale.Intent{Key: key, Amount: 500, Currency: "EUR", OrderID: "order-" + key, User: "u"}
	pay, err := b.Create(b.t.Context(), &in)
	if err != nil || pay.Status != flashsale.PayOpen {
		b.t.Fatalf("create %s: %+v, %v", key, pay, err)
	}
}

func (b *bench) statuses() (out []flashsale.PayStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.got {
		out = append(out, e.Payment.Status)
	}
	return out
}

func (b *bench) is(key string, want flashsale.PayStatus) {
	b.t.Helper()
	pay, err := b.Query(b.t.Context(), key)
	if err != nil || pay.Status != want {
		b.t.Fatalf("payment %s: %+v, %v; want %s", key, pay, err, want)
	}
}

func code(t *testing.T, err error, want flashsale.Code) {
	t.Helper()
	if got := flashsale.CodeOf(err); got != want {
		t.Fatalf("error %v has code %q; want %q", err, got, want)
	}
}
