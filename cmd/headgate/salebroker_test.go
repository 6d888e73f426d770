package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/kafkarelay"
	"github.com/headgate-io/headgate/internal/testservers"
)

// saleBroker is a real broker in the process of the test, at the same address with the same data after each start.
type saleBroker struct {
	relay       string
	start, stop func()
	// read returns what the broker has, and may return something again.
	read func() []told
	// within is whether its absence is told at once: Kafka's client tries for as long as a call may take.
	within bool
}

// told is a message that a broker has.
type told struct {
	id   string // as the broker's own clients see it
	body []byte
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	port, err2 := strconv.Atoi(text)
	if err != nil || err2 != nil {
		t.Fatal(address)
	}
	return port
}

func natsBroker(t *testing.T) *saleBroker {
	t.Helper()
	at := testservers.UnusedAddr(t)
	options := server.Options{Host: "127.0.0.1", Port: portOf(t, at), JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}
	var running *server.Server
	b := &saleBroker{relay: "nats://" + at, within: true}
	b.start = func() {
		copied := options
		s, err := server.NewServer(&copied)
		if err != nil {
			t.Fatal(err)
		}
		if s.Start(); !s.ReadyForConnections(time.Minute) {
			t.Fatal("the server does not get ready")
		}
		running = s
	}
	b.stop = func() {
		if running != nil {
			running.Shutdown()
			running.WaitForShutdown()
		}
	}
	b.read = func() (all []told) {
		conn, err := nats.Connect("nats://"+at, nats.Timeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		js, err := conn.JetStream(nats.MaxWait(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		stream, err := js.StreamInfo("HEADGATE_SALE")
		if err != nil {
			return nil // it is made with the first event
		}
		for n := stream.State.FirstSeq; n > 0 && n <= stream.State.LastSeq; n++ {
			if m, err := js.GetMsg("HEADGATE_SALE", n); err == nil {
				all = append(all, told{m.Header.Get("Nats-Msg-Id"), m.Data})
			}
		}
		return all
	}
	t.Cleanup(b.stop)
	return b
}

func kafkaBroker(t *testing.T) *saleBroker {
	t.Helper()
	at, dir := testservers.UnusedAddr(t), filepath.Join(t.TempDir(), "data")
	b := &saleBroker{relay: "kafka://" + at + "/headgate.sale"}
	var running *kfake.Cluster
	b.start = func() {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(portOf(t, at)), kfake.DataDir(dir), kfake.SyncWrites(), kfake.SeedTopics(3, "headgate.sale"))
		if err != nil {
			t.Fatal(err)
		}
		running = c
	}
	b.stop = func() {
		if running != nil {
			running.Close()
			running = nil
		}
	}
	b.read = func() (all []told) {
		var end int64
		for _, p := range running.PartitionInfos("headgate.sale") {
			end += p.HighWatermark
		}
		reader, err := kgo.NewClient(kgo.SeedBrokers(at), kgo.ConsumeTopics("headgate.sale"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		for int64(len(all)) < end {
			fetched := reader.PollFetches(t.Context())
			if err := fetched.Err(); err != nil {
				t.Fatal(err)
			}
			for _, r := range fetched.Records() {
				id := ""
				for _, h := range r.Headers {
					if h.Key == kafkarelay.IDHeader {
						id = string(h.Value)
					}
				}
				all = append(all, told{id, r.Value})
			}
		}
		return all
	}
	t.Cleanup(b.stop)
	return b
}

// TestSaleTellsItsBroker: a broker that is away at the start, and then in the middle of the sale, gets every event of it all the same, each with its
// identity. Meanwhile the sale goes on, and says what is the matter.
func TestSaleTellsItsBroker(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(t *testing.T) *saleBroker{"NATS": natsBroker, "Kafka": kafkaBroker} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := make(t)
			f := newSaleFleet(t, 1, nil, "--db", "sqlite:"+filepath.Join(t.TempDir(), "sale.db"), "--pay", "simulated", "--relay", b.relay)
			f.run()
			one := f.instances[0]
			if !strings.Contains(one.logged(), "the broker takes no events yet: they wait in the database") {
				t.Errorf("nobody says that the broker is away: %s", one.logged())
			}
			const wave = 4
			f.create(3 * wave)
			one.operate("POST", "/spring/open", `{"reason": "it is time"}`)
			var all []*shopper
			shop := func(name string) {
				crowd := f.crowd(name, wave)
				var group sync.WaitGroup
				shopAll(&group, crowd)
				group.Wait()
				all = append(all, crowd...)
			}
			shop("away")
			f.relayAlarm(b, true)
			b.start()
			f.hears(b, all)
			f.relayAlarm(b, false)
			b.stop()
			shop("away-again")
			f.relayAlarm(b, true)
			b.start()
			shop("there")
			f.hears(b, all)
			f.relayAlarm(b, false)
			f.judge(all, 3*wave)
		})
	}
}

// relayAlarm waits until the alarm of the relay is on, or off, in the metrics and in the status.
func (f *saleFleet) relayAlarm(b *saleBroker, on bool) {
	f.t.Helper()
	if on && !b.within {
		return
	}
	one := f.instances[0]
	f.until("the alarm", func() error {
		r, err := f.send(f.ctx, "GET", one.admin+"/status", "", "")
		if err != nil {
			return err
		}
		said := strings.Contains(r.text, `"alarm": "relay"`)
		if counted := one.metric(`headgate_sale_alarm_active{kind="relay",sale="(none)",sku="(none)"}`) == "1"; said != on || counted != on {
			return fmt.Errorf("status %t, metrics %t, want %t: %s", said, counted, on, r.text)
		}
		if !strings.Contains(r.text, `"relay": "`+b.relay+`"`) {
			return fmt.Errorf("the status names no broker: %s", r.text)
		}
		return nil
	})
}

// hears waits until a broker has every version of everybody's reservation.
func (f *saleFleet) hears(b *saleBroker, all []*shopper) {
	f.t.Helper()
	f.until("every event is told", func() error {
		versions := map[string]map[int64]flashsale.State{}
		for _, m := range b.read() {
			e, err := flashsale.ParseEvent(m.body)
			if err != nil || m.id != e.MessageID() || e.Key != (flashsale.Key{Sale: "spring", SKU: "mug"}) {
				f.t.Fatalf("an event %q: %s, %v", m.id, m.body, err)
			}
			if versions[e.RID] == nil {
				versions[e.RID] = map[int64]flashsale.State{}
			}
			versions[e.RID][e.Version] = e.State
		}
		for _, p := range all {
			if of := versions[p.rid]; of[1] != flashsale.Reserved || of[2] != flashsale.Confirming || of[3] != flashsale.Confirmed {
				return fmt.Errorf("of %s it has %v", p.user, of)
			}
		}
		return nil
	})
}
