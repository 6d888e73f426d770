package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// slowBroker answers when it is told to.
type slowBroker struct {
	fakeBroker
	answer chan struct{}
}

func (b *slowBroker) Publish(ctx context.Context, events []flashsale.Event) error {
	<-b.answer
	return b.fakeBroker.Publish(ctx, events)
}

// TestRelayOnceWaitsForItsTurnNoLongerThanItMay: a pass while another goes on waits for it, and gives up when its context ends,
// however long the broker keeps the other waiting.
func TestRelayOnceWaitsForItsTurnNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRelayScene(t, 3)
		broker := &slowBroker{answer: make(chan struct{})}
		keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: make([]byte, 32)})
		if err != nil {
			t.Fatal(err)
		}
		if s.Engine, err = engine.New(engine.Config{Stock: noStock{}, Orders: s.outbox, Keys: keys, Relay: broker}); err != nil {
			t.Fatal(err)
		}
		first := make(chan int, 1)
		go func() {
			n, _ := s.RelayOnce(t.Context())
			first <- n
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() {
			_, err := s.RelayOnce(ctx)
			second <- err
		}()
		synctest.Wait() // a lock that does not heed the context would keep this from returning
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) || flashsale.CodeOf(err) != flashsale.CodeUnavailable {
			t.Errorf("the second pass ends with %v", err)
		}
		close(broker.answer)
		if n := <-first; n != 3 {
			t.Errorf("the first pass has sent %d", n)
		}
		s.pass(0, "")
	})
}
