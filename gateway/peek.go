package gateway

import (
	"context"
	"io"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// looking is the exchange as the policy's way to look at a body. It costs nothing until the policy does.
type looking struct{ *exchange }

// Peek is that of httpverdict.Peeker.
func (l looking) Peek(ctx context.Context, most int) ([]byte, error) {
	ahead, err := l.look(most)
	if err != nil {
		return nil, err
	}
	return ahead.Peek(ctx, most)
}

func (x *exchange) look(most int) (*httpverdict.PeekedBody, error) {
	x.looks.Lock()
	defer x.looks.Unlock()
	switch {
	case x.ahead != nil:
	case x.r.ContentLength > int64(most):
		return nil, httpverdict.ErrBodyTooLarge
	case x.decided:
		return nil, httpverdict.ErrBodyPassed
	default:
		x.openBody()
		x.body.ahead = true
		x.ahead = httpverdict.NewPeekedBody(x.body, x.r.ContentLength, x.body.passTrailers)
		// net/http notes trailers in the request that it has made, when their time has come, and that is now the time of who
		// reads ahead.
		x.r = x.r.WithContext(x.r.Context())
		x.r.Trailer = nil
	}
	return x.ahead, nil
}

// endLooks ends the time for a first look.
func (x *exchange) endLooks() {
	x.looks.Lock()
	defer x.looks.Unlock()
	x.decided = true
}

// outgoingBody is what the service is sent; call it for a request with a body.
func (x *exchange) outgoingBody() io.ReadCloser {
	if x.ahead != nil {
		return x.ahead
	}
	return x.body
}
