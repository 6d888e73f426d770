package lookup

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// flight is one look-up.
type flight struct {
	key    string
	ctx    context.Context // ends when the look-up's time is up
	cancel context.CancelFunc
	done   chan struct{} // closed when answer is set
	answer Answer
}

var (
	errUnfit   = fmt.Errorf("lookup: the value is longer than %d bytes, is no UTF-8 text or has control characters", MaxValue)
	errNoReply = errors.New("lookup: the look-up did not return")
)

// await returns the answer of a look-up, or otherwise if it fails or comes too late.
func (f *flight) await(ctx context.Context, otherwise Answer) Answer {
	select {
	case <-f.done:
	case <-f.ctx.Done():
	case <-ctx.Done():
	}
	select {
	case <-f.done:
		if !f.answer.Failed {
			return f.answer
		}
	default:
	}
	return otherwise
}

// fly runs a look-up. One that panics has failed: a process must not end for the sake of a dimension.
func (c *Cache) fly(f *flight, find Func) {
	var a Answer
	err := errNoReply
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("lookup: the look-up panicked: %v", cause)
		}
		if err != nil {
			a = Answer{Failed: true}
		}
		c.land(f, a)
		f.cancel()
		if err != nil && c.cfg.OnFailure != nil {
			c.cfg.OnFailure(err)
		}
	}()
	a, err = ask(f.ctx, find)
}

func ask(ctx context.Context, find Func) (Answer, error) {
	value, found, err := find(ctx)
	switch {
	case err != nil:
		return Answer{}, err
	case !found || value == "":
		return Answer{}, nil
	case !fit(value):
		return Answer{}, errUnfit
	}
	return Answer{Value: strings.Clone(value), OK: true}, nil // what it was cut from is not kept
}
