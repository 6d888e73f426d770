package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/inbox"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	_ "modernc.org/sqlite" // the driver of the warehouse's database
)

// consumer names the reader, in the stream and in the inbox.
const consumer = "warehouse"

// again is how long a message rests that could not be taken.
const again = time.Second

const schema = `
CREATE TABLE IF NOT EXISTS to_pack (sale TEXT, sku TEXT, units INTEGER NOT NULL, PRIMARY KEY (sale, sku));
CREATE TABLE IF NOT EXISTS standing (rid TEXT PRIMARY KEY, version INTEGER NOT NULL, state TEXT NOT NULL, quantity INTEGER NOT NULL);`

type config struct {
	nats, stream, file string
	log                *slog.Logger
}

type warehouse struct {
	db  *sql.DB
	box *inbox.Inbox
	log *slog.Logger
}

// open opens the database and makes its tables. Its commits outlive a crash of the machine, since what is acknowledged is not brought
// again.
func open(ctx context.Context, cfg config) (*warehouse, error) {
	db, err := sql.Open("sqlite", "file:"+cfg.file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	w := &warehouse{db: db, log: cfg.log}
	w.box, err = inbox.New(inbox.Config{DB: db, Dialect: inbox.SQLite, Consumer: consumer})
	if err == nil {
		err = w.box.Init(ctx)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, schema)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return w, nil
}

func (w *warehouse) close() error { return w.db.Close() }

// read takes messages until the context ends.
func (w *warehouse) read(ctx context.Context, cfg config) error {
	conn, err := nats.Connect(cfg.nats, nats.MaxReconnects(-1))
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", cfg.nats, err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	// The place of a durable consumer in the stream is kept by the server. At most 64 messages wait here at a time.
	c, err := js.CreateOrUpdateConsumer(ctx, cfg.stream, jetstream.ConsumerConfig{
		Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxAckPending: 64,
	})
	if err != nil {
		return fmt.Errorf("the consumer of stream %s: %w", cfg.stream, err)
	}
	toEnd := context.WithoutCancel(ctx) // what has come is taken to its end
	taking, err := c.Consume(func(m jetstream.Msg) { w.handle(toEnd, m) })
	if err != nil {
		return err
	}
	<-ctx.Done()
	taking.Drain()
	<-taking.Closed()
	return nil
}

// handle takes a message, and tells the server what became of it.
func (w *warehouse) handle(ctx context.Context, m jetstream.Msg) {
	e, err := flashsale.ParseEvent(m.Data())
	if err != nil {
		w.log.Error("a message is no event and is given up", slog.String("subject", m.Subject()), slog.Any("error", err))
		w.told(m.TermWithReason("no event"))
		return
	}
	first, err := w.book(ctx, e)
	if err != nil {
		w.log.Warn("an event was not booked; it comes again", slog.String("event", e.MessageID()), slog.Any("error", err))
		w.told(m.NakWithDelay(again))
		return
	}
	w.log.Debug("booked", slog.String("event", e.MessageID()), slog.Bool("first", first))
	w.told(m.Ack())
}

// told notes that the server was not told; it brings the message again, which does no harm.
func (w *warehouse) told(err error) {
	if err != nil {
		w.log.Debug("an acknowledgement did not get through", slog.Any("error", err))
	}
}

// book does what an event has to do here, once.
func (w *warehouse) book(ctx context.Context, e *flashsale.Event) (first bool, err error) {
	return w.box.Once(ctx, e.MessageID(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO standing (rid, version, state, quantity) VALUES (?, ?, ?, ?)
			ON CONFLICT (rid) DO UPDATE SET version = excluded.version, state = excluded.state WHERE excluded.version > standing.version`,
			e.RID, e.Version, e.State.String(), e.Quantity)
		if err != nil || e.State != flashsale.Confirmed { // there is one event of a reservation that says so, for nothing follows it
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO to_pack (sale, sku, units) VALUES (?, ?, ?)
			ON CONFLICT (sale, sku) DO UPDATE SET units = units + excluded.units`, e.Key.Sale, e.Key.SKU, e.Quantity)
		return err
	})
}
