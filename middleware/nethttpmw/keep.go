package nethttpmw

import (
	"context"
	"io"
	"net/http"

	"github.com/headgate-io/headgate/middleware/stale"
)

// keep has an answer taken down for others. Its body is held back meanwhile, up to the size that is kept: a client that
// reads slowly must not keep those waiting who wait for the same answer.
type keep struct {
	taking *stale.Keeping
	held   bool
}

// begin is called when the status is known.
func (k *keep) begin(status int, h http.Header) { k.held = k.taking.Header(status, h) }

// take takes a part of the body down. held says that it is not to be passed on now.
func (r *recorder) take(p []byte) (held bool, err error) {
	taken := r.keep.taking.Write(p)
	if r.keep.held && taken {
		return true, nil
	}
	return false, r.letGo()
}

// letGo passes on what is held.
func (r *recorder) letGo() error {
	if !r.keep.held {
		return nil
	}
	r.keep.held = false
	n, err := r.ResponseWriter.Write(r.keep.taking.Bytes())
	r.bytes += int64(n)
	r.keep.taking.Forget()
	return err
}

// kept ends what the handler has ended. A handler whose client has left may have stopped anywhere.
func (r *recorder) kept(ctx context.Context) {
	if r.finish.hijacked {
		return
	}
	r.answered()
	r.keep.taking.End(ctx.Err() == nil)
	_ = r.letGo() // the client has gone: nobody is left to tell
}

// onlyWriter hides ReadFrom, which would pass by what is taken down.
type onlyWriter struct{ io.Writer }
