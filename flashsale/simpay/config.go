package simpay

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale/paywire"
)

// Deliver hands a webhook to its receiver. An error, such as an answer other than 2xx, has it sent again later.
type Deliver func(ctx context.Context, header http.Header, body []byte) error

// Config says how a Provider behaves. The zero value is a provider at its best: shoppers act by [Provider.Pay] alone, everything
// happens at once, webhooks come exactly once (if there is a Deliver).
type Config struct {
	// Secrets sign webhooks, all of them, and any of them verifies. Default: one random secret.
	Secrets [][]byte
	// Tolerance is how old, or how far ahead, a webhook's timestamp may be. Default 5 min.
	Tolerance time.Duration
	// Deliver gets the webhooks. Default: there are none.
	Deliver Deliver
	// Parallel is how many webhooks Run sends at a time, of different payments. Default 1: one after the other.
	Parallel int
	// Attempts is how often a webhook is sent at most until the receiver takes it. Default 8. RetryAfter is the wait after the
	// first failure; it doubles with each, up to an hour. Default 5 s.
	Attempts   int
	RetryAfter time.Duration
	// URL is the beginning of the address where shoppers pay; the intent's key is added. Default "https://pay.example/".
	URL string
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Rand is where chances come from. Default: seeded at random. The Provider guards it; nobody else may use it meanwhile.
	Rand *rand.Rand
	// MaxPayments bounds how many payments are kept, default 1,000,000. When there are as many, those that ended longer than Keep
	// ago (default 24 h) make room; if none has, Create fails with CodeUnavailable.
	MaxPayments int
	Keep        time.Duration
	// MaxWebhooks bounds how many webhooks wait; one more is lost. Default 100,000.
	MaxWebhooks int
	// Behaviour is how shoppers and the network misbehave.
	Behaviour Behaviour
}

// Behaviour is made of chances, 0 (never) to 1 (always), and of times.
type Behaviour struct {
	// Capture and Fail are the chances that the shopper of a new intent pays, or tries to and fails, after a time out of Shopper.
	// What is missing to 1 walks away.
	Capture, Fail float64
	Shopper       Range
	// WrongCapture is the chance that a capture by a shopper takes one unit of money less, or another currency.
	WrongCapture float64

	// VoidLater is the chance that a void is not decided at once: the payment stays open for a time out of VoidTime.
	VoidLater float64
	VoidTime  Range
	// VoidTooLate is the chance that a void ends as a capture.
	VoidTooLate float64
	// Undone is the chance that a void or failed payment is captured after all, after a time out of VoidTime.
	Undone float64

	// FailBefore and FailAfter are the chances that a call fails before it takes effect, and after.
	FailBefore, FailAfter float64

	// Webhook is how long a webhook takes, LateBy how much longer one that is Late.
	Webhook Range
	LateBy  time.Duration
	// Lost, Twice, Late and Reordered are the chances of a webhook to never be sent, to be sent twice, late, or only after the next
	// one of the same payment (after LateBy if there is none).
	Lost, Twice, Late, Reordered float64
	// Misreport is the chance that a webhook tells another amount or currency than is true.
	Misreport float64
}

// Range is a time from Min to Max, each as likely as the other. A Max below Min stands for Min.
type Range struct{ Min, Max time.Duration }

func (r Range) pick(rng *rand.Rand) time.Duration {
	if r.Max <= r.Min {
		return max(0, r.Min)
	}
	return max(0, r.Min+time.Duration(rng.Int64N(int64(r.Max-r.Min)+1)))
}

func (c Config) withDefaults() Config {
	if len(c.Secrets) == 0 {
		secret := make([]byte, 32)
		_, _ = crand.Read(secret) // it never fails
		c.Secrets = [][]byte{secret}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		var seed [16]byte
		_, _ = crand.Read(seed[:]) // it never fails
		c.Rand = rand.New(rand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:])))
	}
	if c.URL == "" {
		c.URL = "https://pay.example/"
	}
	positive(&c.Tolerance, paywire.DefaultTolerance)
	positive(&c.RetryAfter, 5*time.Second)
	positive(&c.Keep, 24*time.Hour)
	positive(&c.Attempts, 8)
	positive(&c.Parallel, 1)
	positive(&c.MaxPayments, 1_000_000)
	positive(&c.MaxWebhooks, 100_000)
	return c
}

func positive[N int | time.Duration](field *N, fallback N) {
	if *field <= 0 {
		*field = fallback
	}
}
