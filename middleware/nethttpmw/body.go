package nethttpmw

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// body is that of a request on its way to the handler: the policy may look at it, and it is counted.
type body struct {
	r    *http.Request // as it came
	read atomic.Int64

	mu     sync.Mutex
	passed bool                    // whether the policy has decided: a first look would come too late
	ahead  *httpverdict.PeekedBody // nil until the policy looks
	out    *http.Request           // a copy of r that is made before the first look
}

// bodyOf returns nil for a request without a body.
func bodyOf(r *http.Request) *body {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &body{r: r}
}

// Peek is that of httpverdict.Peeker.
func (b *body) Peek(ctx context.Context, most int) ([]byte, error) {
	ahead, err := b.look(most)
	if err != nil {
		return nil, err
	}
	return ahead.Peek(ctx, most)
}

func (b *body) look(most int) (*httpverdict.PeekedBody, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ahead != nil:
	case b.r.ContentLength > int64(most):
		return nil, httpverdict.ErrBodyTooLarge
	case b.passed:
		return nil, httpverdict.ErrBodyPassed
	default:
		// net/http notes trailers in the request that it has made, when their time has come; who reads ahead must not be in the
		// way of who uses the request meanwhile.
		b.out = b.r.WithContext(b.r.Context())
		b.out.Trailer = nil
		for name := range b.r.Trailer {
			if b.out.Trailer == nil {
				b.out.Trailer = make(http.Header, len(b.r.Trailer))
			}
			b.out.Trailer[name] = nil
		}
		b.ahead = httpverdict.NewPeekedBody(b.r.Body, b.r.ContentLength, b.passTrailers)
	}
	return b.ahead, nil
}

// passTrailers runs in the read of the handler that meets the end.
func (b *body) passTrailers() {
	if b.out.Trailer == nil {
		b.out.Trailer = b.r.Trailer
		return
	}
	for name, values := range b.r.Trailer {
		b.out.Trailer[name] = values
	}
}

// pass ends the time for a first look. It tells whether the policy has looked.
func (b *body) pass() (looked bool) {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passed = true
	return b.ahead != nil
}

// pending tells whether a look has been given up whose read is still under way.
func (b *body) pending() bool { return b.pass() && b.ahead.Pending() }

// abandon ends a read that is still under way when the handler is over, where the server can: else it would wait for it.
func (b *body) abandon(w http.ResponseWriter) {
	if b.pending() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a server that cannot has bounds of its own
	}
}

// Read is the handler's.
func (b *body) Read(p []byte) (int, error) {
	if b.ahead != nil {
		return b.ahead.Read(p)
	}
	n, err := b.r.Body.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// Close is the handler's.
func (b *body) Close() error {
	if b.ahead != nil {
		return b.ahead.Close()
	}
	return b.r.Body.Close()
}

// came returns how many bytes have been read from the client.
func (b *body) came() int64 {
	switch {
	case b == nil:
		return 0
	case b.pass():
		return b.ahead.Came()
	}
	return b.read.Load()
}
