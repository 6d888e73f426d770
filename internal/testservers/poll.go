package testservers

import (
	"context"
	"fmt"
	"time"
)

// startTimeout bounds how long a server may take to be ready: far more than it needs, for machines under load.
const startTimeout = 60 * time.Second

// pollInterval is the time between two looks at a condition.
const pollInterval = 10 * time.Millisecond

// Poll looks at a condition until it holds, that is returns nil, or the context ends. The error then has the condition's
// last answer.
func Poll(ctx context.Context, condition func() error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting: %w", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

func pollFor(d time.Duration, condition func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return Poll(ctx, condition)
}
