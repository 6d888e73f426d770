package natsrelay_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/natsrelay"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The server has a goroutine for all its timers of a process, which is never ended, and one for what it tells the source of a stream
	// that ends, which waits for an answer longer than the server lives.
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(server+"/ats.init.0.func1"), goleak.IgnoreAnyFunction(server+".(*stream).tryDeleteSourcingConsumer.func1"))
}

// patience is how long anything may take: the machine may stand still for a while.
const patience = time.Minute

// broker is a real server of JetStream in this process, with its files in a folder of the test.
type broker struct {
	t       *testing.T
	options server.Options
	running *server.Server
}

func startBroker(t *testing.T, change func(o *server.Options)) *broker {
	t.Helper()
	_, text, _ := strings.Cut(testservers.UnusedAddr(t), ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t: t, options: server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	}}
	if change != nil {
		change(&b.options)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	options := b.options
	s, err := server.NewServer(&options)
	if err != nil {
		b.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		b.t.Fatal("the server does not get ready")
	}
	b.running = s
}

func (b *broker) stop() {
	b.running.Shutdown()
	b.running.WaitForShutdown()
}

func (b *broker) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", b.options.Port) }

// jetStream returns a client that is not the relay's.
func (b *broker) jetStream() jetstream.JetStream {
	b.t.Helper()
	conn, err := nats.Connect(b.url(), nats.Timeout(patience))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		b.t.Fatal(err)
	}
	return js
}

// stored returns the messages of a stream in their order.
func (b *broker) stored(stream string) []*jetstream.RawStreamMsg {
	b.t.Helper()
	s, err := b.jetStream().Stream(b.t.Context(), stream)
	if err != nil {
		b.t.Fatal(err)
	}
	var list []*jetstream.RawStreamMsg
	for seq := max(1, s.CachedInfo().State.FirstSeq); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(b.t.Context(), seq)
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

func openRelay(t *testing.T, url string, cfg natsrelay.Config) *natsrelay.Relay {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = patience
	}
	r, err := natsrelay.Open(url, cfg, nats.Timeout(patience), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// checked is a relay whose stream was made.
func checked(t *testing.T, url string, cfg natsrelay.Config) *natsrelay.Relay {
	t.Helper()
	cfg.Create = true
	r := openRelay(t, url, cfg)
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func event(rid string, version int64) flashsale.Event {
	return flashsale.Event{
		ID: 1, RID: rid, Version: version, Key: flashsale.Key{Sale: "spring", SKU: "phone"}, User: "u-1", Quantity: 1,
		State: flashsale.Reserved, OrderID: "o-" + rid, Amount: 100, Currency: "CNY", At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

func wantCode(t *testing.T, err error, code flashsale.Code) {
	t.Helper()
	if flashsale.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// eventually repeats f until it gives no error.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", 2*patience, err)
		case <-tick.C:
		}
	}
}
