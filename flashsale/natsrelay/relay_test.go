package natsrelay_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/natsrelay"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const stream = "HEADGATE_SALE"

func TestPublish(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	r := checked(t, b.url(), natsrelay.Config{})
	first, second := event("r1", 1), event("r1", 2)
	second.Key.Sale, second.State = "spring.2026", flashsale.Confirmed
	if err := r.Publish(t.Context(), []flashsale.Event{first, second}); err != nil {
		t.Fatal(err)
	}
	got := b.stored(stream)
	if len(got) != 2 {
		t.Fatalf("%d messages", len(got))
	}
	for i, want := range []struct {
		subject, id string
		event       flashsale.Event
	}{
		{"headgate.sale.spring.reserved", "r1:1", first},
		{"headgate.sale.spring~2026.confirmed", "r1:2", second},
	} {
		e, err := flashsale.ParseEvent(got[i].Data)
		if err != nil {
			t.Fatal(err)
		}
		want.event.ID = 0
		if got[i].Subject != want.subject || got[i].Header.Get("Nats-Msg-Id") != want.id || *e != want.event {
			t.Errorf("message %d: %s %v %+v", i, got[i].Subject, got[i].Header, *e)
		}
	}
}

// TestPublishManyInOrder: more messages than may be in flight, each once, in their order.
func TestPublishManyInOrder(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	r := checked(t, b.url(), natsrelay.Config{InFlight: 3})
	const callers, each = 4, 100
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			var events []flashsale.Event
			for v := range each {
				events = append(events, event(fmt.Sprintf("r%d", caller), int64(v+1)))
			}
			if err := r.Publish(context.Background(), events); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	next := map[string]int64{}
	for _, m := range b.stored(stream) {
		e, err := flashsale.ParseEvent(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		next[e.RID]++
		if e.Version != next[e.RID] {
			t.Fatalf("%s came as number %d", e.MessageID(), next[e.RID])
		}
	}
	if want := map[string]int64{"r0": each, "r1": each, "r2": each, "r3": each}; !reflect.DeepEqual(next, want) {
		t.Fatalf("got %v", next)
	}
}

func TestPublishTwiceIsOneMessage(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	r := checked(t, b.url(), natsrelay.Config{})
	events := []flashsale.Event{event("r1", 1), event("r2", 1)}
	for range 3 {
		if err := r.Publish(t.Context(), events); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.stored(stream); len(got) != 2 {
		t.Fatalf("%d messages", len(got))
	}
}

// TestServerGoesAndComesBack: while it is away nothing is said to be published, and afterwards everything is, by the same relay.
func TestServerGoesAndComesBack(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	r := checked(t, b.url(), natsrelay.Config{})
	publish := func(rid string, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return r.Publish(ctx, []flashsale.Event{event(rid, 1)})
	}
	if err := publish("before", patience); err != nil {
		t.Fatal(err)
	}
	b.stop()
	wantCode(t, publish("during", 2*time.Second), flashsale.CodeUnavailable)
	b.start()
	eventually(t, func() error { return publish("during", 10*time.Second) })
	if got := b.stored(stream); len(got) != 2 || got[0].Header.Get("Nats-Msg-Id") != "before:1" || got[1].Header.Get("Nats-Msg-Id") != "during:1" {
		t.Fatalf("got %v", got)
	}
}

// TestServerThatSaysNothing: who asks one that is connected and does not answer is told so after Config.Timeout.
func TestServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	checked(t, b.url(), natsrelay.Config{}) // there is a stream
	proxy := testservers.NewProxy(t, strings.TrimPrefix(b.url(), "nats://"))
	hasty := openRelay(t, "nats://"+proxy.Addr(), natsrelay.Config{Timeout: time.Second})
	eventually(t, func() error { return hasty.Publish(t.Context(), []flashsale.Event{event("before", 1)}) })
	if err := proxy.Set(testservers.Fault{Drop: true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	wantCode(t, hasty.Publish(ctx, []flashsale.Event{event("during", 1)}), flashsale.CodeUnavailable)
	wantCode(t, hasty.Check(ctx), flashsale.CodeUnavailable)
	if ctx.Err() != nil {
		t.Error("they ended with their context, not in their own time")
	}
}

// TestServerThatComesLater: the sale starts without its broker.
func TestServerThatComesLater(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	b.stop()
	r := openRelay(t, b.url(), natsrelay.Config{Create: true})
	wantCode(t, r.Check(t.Context()), flashsale.CodeUnavailable)
	wantCode(t, r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}), flashsale.CodeUnavailable)
	b.start()
	// The stream is made by the first Publish that misses it.
	eventually(t, func() error { return r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}) })
	if got := b.stored(stream); len(got) != 1 {
		t.Fatalf("%d messages", len(got))
	}
}

// TestStreamFull: a stream that refuses what is new is not the fault of an event, and takes it when there is room.
func TestStreamFull(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	js := b.jetStream()
	cfg := jetstream.StreamConfig{Name: stream, Subjects: []string{"headgate.sale.>"}, MaxMsgs: 2, Discard: jetstream.DiscardNew}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	r := openRelay(t, b.url(), natsrelay.Config{})
	eventually(t, func() error { return r.Check(t.Context()) })
	events := []flashsale.Event{event("r1", 1), event("r2", 1), event("r3", 1)}
	wantCode(t, r.Publish(t.Context(), events), flashsale.CodeUnavailable)
	cfg.MaxMsgs = 3
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	if got := b.stored(stream); len(got) != 3 {
		t.Fatalf("%d messages", len(got))
	}
}

// TestRefusedForGood: what a stream will never take has a code of its own, and does not keep the others from being sent.
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	foreign := event("r2", 1)
	foreign.Key.Sale = "autumn"
	invalid := event("r2", 0)
	long := event("r2", 1)
	long.Reason = strings.Repeat("x", 1000)
	for name, tc := range map[string]struct {
		streams []jetstream.StreamConfig
		payload int32
		bad     flashsale.Event
		sent    int
	}{
		"a subject that no stream takes": {streams: []jetstream.StreamConfig{{Name: stream, Subjects: []string{"headgate.sale.spring.*"}}}, bad: foreign, sent: 2},
		"a subject of another stream": {streams: []jetstream.StreamConfig{
			{Name: stream, Subjects: []string{"headgate.sale.spring.*"}}, {Name: "OTHER", Subjects: []string{"headgate.sale.autumn.>"}},
		}, bad: foreign, sent: 2},
		"more bytes than the stream takes": {streams: []jetstream.StreamConfig{{Name: stream, Subjects: []string{"headgate.>"}, MaxMsgSize: 700}}, bad: long, sent: 2},
		"more bytes than the server takes": {streams: []jetstream.StreamConfig{{Name: stream, Subjects: []string{"headgate.>"}}}, payload: 1100, bad: long, sent: 2},
		"no event at all":                  {streams: []jetstream.StreamConfig{{Name: stream, Subjects: []string{"headgate.>"}}}, bad: invalid, sent: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, func(o *server.Options) { o.MaxPayload = tc.payload })
			for _, cfg := range tc.streams {
				if _, err := b.jetStream().CreateStream(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
			}
			r := openRelay(t, b.url(), natsrelay.Config{})
			var err error
			eventually(t, func() error {
				if err = r.Publish(t.Context(), []flashsale.Event{event("r1", 1), tc.bad, event("r3", 1)}); flashsale.CodeOf(err) == flashsale.CodeUnavailable {
					return err
				}
				return nil
			})
			wantCode(t, err, flashsale.CodeInvalidArgument)
			if got := b.stored(stream); len(got) != tc.sent {
				t.Fatalf("%d messages were stored, want %d", len(got), tc.sent)
			}
		})
	}
}

// TestNoStream: without a stream nothing is refused for good, since it can be made.
func TestNoStream(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	if _, err := b.jetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"headgate.sale.autumn.>"}}); err != nil {
		t.Fatal(err)
	}
	r := openRelay(t, b.url(), natsrelay.Config{})
	foreign := event("r1", 1)
	foreign.Key.Sale = "autumn"
	for _, e := range []flashsale.Event{event("r1", 1), foreign} {
		wantCode(t, r.Publish(t.Context(), []flashsale.Event{e}), flashsale.CodeUnavailable)
	}
	wantCode(t, r.Check(t.Context()), flashsale.CodeUnavailable)
}

func TestNoJetStream(t *testing.T) {
	t.Parallel()
	b := startBroker(t, func(o *server.Options) { o.JetStream = false })
	r := openRelay(t, b.url(), natsrelay.Config{Create: true})
	wantCode(t, r.Check(t.Context()), flashsale.CodeUnavailable)
	wantCode(t, r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}), flashsale.CodeUnavailable)
}

func TestPublishEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	r := checked(t, b.url(), natsrelay.Config{Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.Publish(ctx, []flashsale.Event{event("r1", 1)})
	if err != nil { // either way ended first
		wantCode(t, err, flashsale.CodeUnavailable)
	}
	if err := r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}); err != nil {
		t.Fatal(err)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	conn, err := nats.Connect(b.url(), nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := natsrelay.New(conn, natsrelay.Config{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}), flashsale.CodeClosed)
	wantCode(t, r.Check(t.Context()), flashsale.CodeClosed)
	if !conn.IsConnected() {
		t.Error("a connection that is not the relay's was closed")
	}
}
