// Package porttest puts the ports of a sale behind a gate, which a test closes where it likes: before a call, so that nothing runs, or
// after it, so that it has run and nobody has heard of it. That is how the tests crash an engine between any two steps, and how they
// interleave several.
package porttest

import "context"

// Gate is asked before and after each call. Either function may be nil, may wait, and may refuse; they are called by many
// goroutines at a time if the calls are.
type Gate struct {
	// Before is asked with the name of the call, such as "orders.Decide". If it refuses, the call is not made.
	Before func(ctx context.Context, call string) error
	// After is told how the call has ended. What it returns is what the caller gets: nil hides no error of the call.
	After func(ctx context.Context, call string, err error) error
	// Around, if it is not nil, takes the place of both: it makes the call itself, by do, as often as it likes, and the caller gets what
	// it returns, beside the answer of the last do.
	Around func(ctx context.Context, call string, do func() error) error
}

func (g *Gate) pass(ctx context.Context, call string, f func() error) error {
	if g.Around != nil {
		return g.Around(ctx, call, f)
	}
	if g.Before != nil {
		if err := g.Before(ctx, call); err != nil {
			return err
		}
	}
	err := f()
	if g.After != nil {
		if refused := g.After(ctx, call, err); refused != nil {
			return refused
		}
	}
	return err
}
