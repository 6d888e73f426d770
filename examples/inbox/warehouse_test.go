package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/natsrelay"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

func startServer(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready after a minute")
	}
	return s.ClientURL()
}

// shopEvents are those of n reservations of 2 units: every fourth is cancelled, the others are paid.
func shopEvents(n int) (events []flashsale.Event, paid int) {
	for i := range n {
		e := flashsale.Event{
			RID: fmt.Sprintf("r%d", i), Key: flashsale.Key{Sale: "spring", SKU: "phone"}, User: "u", Quantity: 2, Amount: 200, Currency: "CNY",
			At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		}
		states := []flashsale.State{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed}
		if i%4 == 0 {
			states = []flashsale.State{flashsale.Reserved, flashsale.Cancelled}
		} else {
			paid++
		}
		for v, s := range states {
			e.Version, e.State = int64(v+1), s
			events = append(events, e)
		}
	}
	return events, paid
}

// TestEveryEventCountsOnce: events come three times, also in the wrong order and past the server's own check of ids, and the reader is
// stopped and started in between.
func TestEveryEventCountsOnce(t *testing.T) {
	t.Parallel()
	url := startServer(t)
	relay, err := natsrelay.Open(url, natsrelay.Config{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	events, paid := shopEvents(60)
	if err := relay.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := relay.Publish(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	publishAgain(t, url, events)
	cfg := config{nats: url, stream: "HEADGATE_SALE", file: filepath.Join(t.TempDir(), "warehouse.db"), log: slog.New(slog.DiscardHandler)}
	w, err := open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	readUntil(t, w, cfg, 50)
	readUntil(t, w, cfg, len(events))
	publishAgain(t, url, events)
	last := events[0]
	last.RID, last.Version, last.State = "last", 1, flashsale.Confirmed
	if err := relay.Publish(t.Context(), []flashsale.Event{last}); err != nil {
		t.Fatal(err)
	}
	readUntil(t, w, cfg, len(events)+1)
	if got, want := count(t, w, "SELECT units FROM to_pack WHERE sale = 'spring' AND sku = 'phone'"), 2*(paid+1); got != want {
		t.Errorf("%d units are to be packed, want %d", got, want)
	}
	for state, want := range map[flashsale.State]int{flashsale.Confirmed: paid + 1, flashsale.Cancelled: 60 - paid, flashsale.Reserved: 0, flashsale.Confirming: 0} {
		if got := count(t, w, "SELECT COUNT(*) FROM standing WHERE state = '"+state.String()+"'"); got != want {
			t.Errorf("%d reservations are %s, want %d", got, state, want)
		}
	}
}

// publishAgain publishes events from the last to the first, twice each and without their ids, so that the server keeps them all, and
// something that is no event.
func publishAgain(t *testing.T, url string, events []flashsale.Event) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	bodies := [][]byte{[]byte("{}")}
	for i := range events {
		body, err := flashsale.MarshalEvent(&events[len(events)-1-i])
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body, body)
	}
	for _, body := range bodies {
		if err := conn.Publish("headgate.sale.spring.again", body); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

// readUntil lets the reader run until so many events are noted.
func readUntil(t *testing.T, w *warehouse, cfg config, notes int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.read(ctx, cfg) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for count(t, w, "SELECT COUNT(*) FROM inbox") < notes {
		select {
		case err := <-done:
			t.Fatalf("the reader ended: %v", err)
		case <-tick.C:
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, w *warehouse, query string) (n int) {
	t.Helper()
	if err := w.db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
