package natsrelay

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// call is one Publish under way.
type call struct {
	relay    *Relay
	waiting  []jetstream.PubAckFuture // in the order of sending, at most Config.InFlight
	subjects []string                 // of the stream, once they were asked for
	refused  error                    // the first that was refused for good
	down     error                    // the first that means that the others would fail as well
}

// send sends a message once fewer than InFlight wait, and reports whether there is sense in sending more.
func (c *call) send(ctx context.Context, m *nats.Msg) bool {
	if len(c.waiting) >= c.relay.cfg.InFlight {
		c.await(ctx)
	}
	if c.down != nil {
		return false
	}
	// It is not repeated by the client: a repeated one would come after the later versions of its reservation.
	future, err := c.relay.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	if err != nil {
		c.failed(ctx, m, err)
		return c.down == nil
	}
	c.waiting = append(c.waiting, future)
	return true
}

// await waits for the oldest. A message that is not answered ends with Config.Timeout.
func (c *call) await(ctx context.Context) {
	oldest := c.waiting[0]
	c.waiting = c.waiting[1:]
	select {
	case <-oldest.Ok():
	case err := <-oldest.Err():
		c.failed(ctx, oldest.Msg(), err)
	case <-ctx.Done():
		c.waiting = nil
		if c.down == nil {
			c.down = unavailable("waiting for acknowledgements", ctx.Err())
		}
	}
}

func (c *call) failed(ctx context.Context, m *nats.Msg, err error) {
	err = c.judge(ctx, m, err)
	first := &c.down
	if flashsale.CodeOf(err) == flashsale.CodeInvalidArgument {
		first = &c.refused
	}
	if *first == nil {
		*first = err
	}
}

// finish waits for all that are still waiting.
func (c *call) finish(ctx context.Context) error {
	for len(c.waiting) > 0 {
		c.await(ctx)
	}
	if c.down != nil {
		return c.down
	}
	return c.refused
}
