package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// The limit of every comparison of speed. All is allowed, so that every check has to write: what is denied costs some of
// them less. And a key that was used stays in use, so that none is taken for idle and made anew in between. Peers with
// windows get a window that is as good as endless.
const (
	benchLimit  = "token_bucket 1/1m burst=1000000"
	benchBurst  = 1_000_000
	benchPeriod = time.Minute
	windowCount = 1_000_000_000
	window      = time.Hour
)

// errDenied says that a contender did not do the work it is measured for.
var errDenied = errors.New("a check was denied; the comparison needs all to be allowed")

// check asks for one unit on the i-th key.
type check func(i int) error

// checker is a rate limiter that can be compared. Each worker has a check of its own.
type checker struct {
	name   string
	worker func() check
	// limiter is what it asks, where that is set up apart; keys how many it has, 0 for inProcessKeys.
	limiter headgate.Limiter
	keys    int
	close   func() error // nil if there is nothing to close
}

func keys(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("user:%011d", i) // 16 bytes
	}
	return list
}

// caller is what one goroutine writes, with a cache line to spare on both sides: what is measured is the limiter, and not
// that what two callers write happens to lie side by side.
type caller struct {
	_        [128]byte
	d        headgate.Decision
	charges  [4]headgate.Charge
	outcomes [4]headgate.Outcome
	_        [128]byte
}

// headgateChecks prepares the charges once, as a program with a hot path does: a check puts its key into them, and reuses the
// decision.
func headgateChecks(l headgate.Limiter, keys []string, texts ...string) (checker, error) {
	prepared := make([]headgate.Charge, len(texts))
	for i, text := range texts {
		limit, err := headgate.ParseLimit(text)
		if err != nil {
			return checker{}, err
		}
		prepared[i] = headgate.One("bench/"+strconv.Itoa(i), "", limit)
		prepared[i].Holder = "holder" // for concurrency
	}
	return checker{worker: func() check {
		w, ctx := new(caller), context.Background()
		charges := append(w.charges[:0], prepared...)
		w.d.Outcomes = w.outcomes[:0]
		return func(i int) error {
			for c := range charges {
				charges[c].Key = keys[i]
			}
			err := l.Take(ctx, charges, &w.d)
			return allowed(w.d.Allowed, err)
		}
	}}, nil
}

func allowed(ok bool, err error) error {
	if err == nil && !ok {
		return errDenied
	}
	return err
}

// scatter visits the keys in an order that no cache foresees, another for each worker: a full-period congruential sequence
// over the next power of two. In one order for all, a worker would catch up with another, whose keys are in the cache, and
// from then on they would wait for each other at every key.
type scatter struct{ at, step, mask, n int }

func newScatter(worker, n int) *scatter {
	mask := 1
	for mask < n {
		mask *= 2
	}
	return &scatter{at: worker * 7919, step: 1013904223 + 2*worker, mask: mask - 1, n: n}
}

func (s *scatter) next() int {
	for {
		s.at = (s.at*1664525 + s.step) & s.mask
		if i := (s.at ^ s.at>>5) & s.mask; i < s.n {
			return i
		}
	}
}
