package natsrelay

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Relay publishes to JetStream. It is safe for concurrent use; one call of Publish runs at a time.
type Relay struct {
	cfg    Config
	conn   *nats.Conn
	owned  bool
	js     jetstream.JetStream
	turn   chan struct{}
	closed atomic.Bool
	once   sync.Once
}

var _ flashsale.Relay = (*Relay)(nil)

// New returns a relay over a connection of your own, which stays yours to close. It asks the server nothing yet: see Check.
func New(conn *nats.Conn, cfg Config) (*Relay, error) {
	if conn == nil {
		return nil, invalid("a connection is missing")
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(cfg.Timeout), jetstream.WithDefaultTimeout(cfg.Timeout),
		jetstream.WithPublishAsyncMaxPending(cfg.InFlight))
	if err != nil {
		return nil, invalid("%v", err)
	}
	return &Relay{cfg: cfg, conn: conn, js: js, turn: make(chan struct{}, 1)}, nil
}

// Open connects to the servers of a URL (several with commas between them) and returns a relay that closes the connection with itself. A
// server that is not there yet is no error: it is looked for until it comes. Options are those of nats.go, such as credentials
// and TLS.
func Open(url string, cfg Config, options ...nats.Option) (*Relay, error) {
	// What cannot be sent at once is not kept for later: the outbox keeps it.
	base := []nats.Option{nats.Name("headgate sale relay"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectBufSize(-1)}
	conn, err := nats.Connect(url, append(base, options...)...)
	if err != nil {
		return nil, openError(err)
	}
	r, err := New(conn, cfg)
	if err != nil {
		conn.Close()
		return nil, err
	}
	r.owned = true
	return r, nil
}

// Publish sends events and waits for the acknowledgement of each. What the stream refuses for good does not keep the others of the call
// from being sent; see [flashsale.Relay] for what the error tells.
func (r *Relay) Publish(ctx context.Context, events []flashsale.Event) error {
	if len(events) == 0 {
		return nil
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return unavailable("waiting for its turn", ctx.Err())
	}
	messages, err := r.messages(events)
	if err != nil {
		return err
	}
	if err := r.ready(); err != nil {
		return err
	}
	c := call{relay: r, waiting: make([]jetstream.PubAckFuture, 0, min(len(messages), r.cfg.InFlight))}
	for _, m := range messages {
		if !c.send(ctx, m) {
			break
		}
	}
	return c.finish(ctx)
}

// ready says why nothing can be sent now. A connection that is being made again would keep messages for later, and answer none.
func (r *Relay) ready() error {
	switch {
	case r.closed.Load():
		return &flashsale.Error{Code: flashsale.CodeClosed, Message: "natsrelay: the relay is closed"}
	case !r.conn.IsConnected():
		return unavailable("there is no connection to the server now", r.conn.LastError())
	}
	return nil
}

func (r *Relay) messages(events []flashsale.Event) ([]*nats.Msg, error) {
	messages := make([]*nats.Msg, len(events))
	for i := range events {
		e := &events[i]
		body, err := flashsale.MarshalEvent(e)
		if err != nil {
			return nil, err
		}
		messages[i] = &nats.Msg{Subject: r.cfg.subject(e), Data: body, Header: nats.Header{
			jetstream.MsgIDHeader: {e.MessageID()}, jetstream.ExpectedStreamHeader: {r.cfg.Stream}, "Content-Type": {"application/json"},
		}}
	}
	return messages, nil
}

// Close ends the relay, and the connection if Open has made it. Closing twice does no harm.
func (r *Relay) Close() error {
	r.once.Do(func() {
		r.closed.Store(true)
		r.js.CleanupPublisher()
		if r.owned {
			r.conn.Close()
		}
	})
	return nil
}
