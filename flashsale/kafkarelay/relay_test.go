package kafkarelay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/kafkarelay"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const topic = "headgate.sale"

// patience is how long anything may take: the machine may stand still for a while.
const patience = time.Minute

func startKafka(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newRelay(t *testing.T, cfg kafkarelay.Config) *kafkarelay.Relay {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = patience
	}
	cfg.Options = append(cfg.Options, kgo.MetadataMinAge(10*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }))
	r, err := kafkarelay.New(cfg)
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

func event(rid string, version int64) flashsale.Event {
	return flashsale.Event{
		ID: 1, RID: rid, Version: version, Key: flashsale.Key{Sale: "spring", SKU: "phone"}, User: "u-1", Quantity: 1,
		State: flashsale.Reserved, OrderID: "o-" + rid, Amount: 100, Currency: "CNY", At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

// stored reads n records of the topic, those of a partition in their order, and fails if there are more.
func stored(t *testing.T, brokers []string, c *kfake.Cluster, n int) []*kgo.Record {
	t.Helper()
	var end int64
	for _, p := range c.PartitionInfos(topic) {
		end += p.HighWatermark
	}
	if end != int64(n) {
		t.Fatalf("%d records are stored, want %d", end, n)
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var list []*kgo.Record
	for len(list) < n {
		fetched := reader.PollFetches(t.Context())
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		list = append(list, fetched.Records()...)
	}
	return list
}

func wantCode(t *testing.T, err error, code flashsale.Code) {
	t.Helper()
	if flashsale.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	c := startKafka(t, kfake.SeedTopics(1, topic))
	r := newRelay(t, kafkarelay.Config{Brokers: c.ListenAddrs()})
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := event("r1", 3)
	want.State = flashsale.Confirmed
	if err := r.Publish(t.Context(), []flashsale.Event{want}); err != nil {
		t.Fatal(err)
	}
	got := stored(t, c.ListenAddrs(), c, 1)[0]
	e, err := flashsale.ParseEvent(got.Value)
	if err != nil {
		t.Fatal(err)
	}
	want.ID = 0
	if *e != want || string(got.Key) != "r1" || len(got.Headers) != 2 || got.Headers[0].Key != kafkarelay.IDHeader || string(got.Headers[0].Value) != "r1:3" {
		t.Fatalf("%s %+v %+v", got.Key, got.Headers, *e)
	}
}

// TestVersionsOfAReservationKeepTheirOrder: all of one rid in one partition, rids over several, while brokers fail and answers get lost.
func TestVersionsOfAReservationKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const rids, versions = 40, 10
	for name, faults := range map[string][]kfake.Fault{
		"brokers that answer": nil,
		"another leader":      {{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: 3}},
		// The broker stores what it says it did not: what the client repeats must not come twice.
		"answers that get lost": {{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: 3}},
		"too few replicas":      {{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend, Count: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startKafka(t, kfake.NumBrokers(3), kfake.SeedTopics(5, topic))
			handle := c.Fault(faults...)
			r := newRelay(t, kafkarelay.Config{Brokers: c.ListenAddrs(), InFlight: 7})
			var events []flashsale.Event
			for v := range versions {
				for i := range rids {
					events = append(events, event(fmt.Sprintf("r%d", i), int64(v+1)))
				}
			}
			if err := r.Publish(t.Context(), events); err != nil {
				t.Fatal(err)
			}
			if hits := handle.Hits(); len(faults) > 0 && hits != 3 {
				t.Errorf("%d produce requests failed", hits)
			}
			orderKept(t, stored(t, c.ListenAddrs(), c, rids*versions))
		})
	}
}

func orderKept(t *testing.T, records []*kgo.Record) {
	t.Helper()
	partitions, next, used := map[string]int32{}, map[string]int64{}, map[int32]bool{}
	for _, rec := range records {
		e, err := flashsale.ParseEvent(rec.Value)
		if err != nil {
			t.Fatal(err)
		}
		next[e.RID]++
		if p, known := partitions[e.RID]; known && p != rec.Partition || e.Version != next[e.RID] {
			t.Fatalf("%s came as number %d, in partition %d", e.MessageID(), next[e.RID], rec.Partition)
		}
		partitions[e.RID], used[rec.Partition] = rec.Partition, true
	}
	if len(used) != 5 {
		t.Errorf("%d of 5 partitions were used", len(used))
	}
}

// TestOnTheWire: what is asked of the brokers, whatever options there are.
func TestOnTheWire(t *testing.T) {
	t.Parallel()
	c := startKafka(t, kfake.SeedTopics(1, topic))
	var acks, idempotent atomic.Int64
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		produce, _ := req.(*kmsg.ProduceRequest)
		acks.Store(int64(produce.Acks))
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(produce.Topics[0].Partitions[0].Records); err == nil && batch.ProducerID >= 0 && batch.FirstSequence >= 0 {
			idempotent.Add(1)
		}
		return nil, nil, false
	})
	r := newRelay(t, kafkarelay.Config{Brokers: c.ListenAddrs(), Options: []kgo.Opt{kgo.RequiredAcks(kgo.NoAck())}})
	if err := r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}); err != nil {
		t.Fatal(err)
	}
	if acks.Load() != -1 || idempotent.Load() != 1 {
		t.Fatalf("acks=%d, %d idempotent batches", acks.Load(), idempotent.Load())
	}
	_, err := kafkarelay.New(kafkarelay.Config{Options: []kgo.Opt{kgo.DisableIdempotentWrite()}})
	wantCode(t, err, flashsale.CodeInvalidArgument)
}

// TestWhatAnErrorMeans: an event's own fault, or the broker's; and the same events come through once it is over.
func TestWhatAnErrorMeans(t *testing.T) {
	t.Parallel()
	for err, want := range map[*kerr.Error]flashsale.Code{
		kerr.MessageTooLarge:          flashsale.CodeInvalidArgument,
		kerr.InvalidRecord:            flashsale.CodeInvalidArgument,
		kerr.PolicyViolation:          flashsale.CodeInvalidArgument,
		kerr.TopicAuthorizationFailed: flashsale.CodeUnavailable,
		kerr.InvalidRequiredAcks:      flashsale.CodeUnavailable,
	} {
		t.Run(err.Message, func(t *testing.T) {
			t.Parallel()
			c := startKafka(t, kfake.SeedTopics(3, topic))
			r := newRelay(t, kafkarelay.Config{Brokers: c.ListenAddrs()})
			events := []flashsale.Event{event("r1", 1), event("r1", 2)}
			handle := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: err, Count: -1})
			wantCode(t, r.Publish(t.Context(), events), want)
			handle.Remove()
			if err := r.Publish(t.Context(), events); err != nil {
				t.Fatal(err)
			}
			stored(t, c.ListenAddrs(), c, 2)
		})
	}
}

func TestAnEventThatIsNone(t *testing.T) {
	t.Parallel()
	c := startKafka(t, kfake.SeedTopics(1, topic))
	r := newRelay(t, kafkarelay.Config{Brokers: c.ListenAddrs()})
	wantCode(t, r.Publish(t.Context(), []flashsale.Event{event("r1", 1), event("r2", 0)}), flashsale.CodeInvalidArgument)
	stored(t, c.ListenAddrs(), c, 0)
}

// TestBrokersGoAndComeBack: nothing is said to be published while they are away, the call ends in its time, and the same relay goes on.
func TestBrokersGoAndComeBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var port int
	if _, err := fmt.Sscanf(testservers.UnusedAddr(t), "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.SeedTopics(2, topic), kfake.DataDir(dir), kfake.SyncWrites())
	if err != nil {
		t.Fatal(err)
	}
	addrs := c.ListenAddrs()
	r := newRelay(t, kafkarelay.Config{Brokers: addrs})
	hasty := newRelay(t, kafkarelay.Config{Brokers: addrs, Timeout: time.Second})
	if err := r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	events := []flashsale.Event{event("r2", 1), event("r2", 2)}
	long, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	wantCode(t, hasty.Publish(long, events), flashsale.CodeUnavailable)
	wantCode(t, hasty.Check(long), flashsale.CodeUnavailable)
	if long.Err() != nil {
		t.Error("they ended with their context, not in their own time")
	}
	publish := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return r.Publish(ctx, events)
	}
	wantCode(t, publish(time.Second), flashsale.CodeUnavailable)
	again := startKafka(t, kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir))
	until := time.Now().Add(2 * patience)
	for err = errors.New("not yet"); err != nil; {
		if err = publish(10 * time.Second); err != nil && time.Now().After(until) {
			t.Fatalf("after %s: %v", 2*patience, err)
		}
	}
	stored(t, addrs, again, 3)
}

// TestAnAnswerThatNeverComes: Publish ends with its context, and what was under way may come twice afterwards, in order.
func TestAnAnswerThatNeverComes(t *testing.T) {
	t.Parallel()
	c := startKafka(t, kfake.SeedTopics(1, topic))
	r := newRelay(t, kafkarelay.Config{Brokers: c.ListenAddrs(), Timeout: time.Minute})
	asked := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(asked)
		return nil, nil, true
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Publish(ctx, []flashsale.Event{event("r1", 1)}) }()
	<-asked
	cancel()
	wantCode(t, <-done, flashsale.CodeUnavailable)
}

func TestNoTopic(t *testing.T) {
	t.Parallel()
	c := startKafka(t)
	r := newRelay(t, kafkarelay.Config{Brokers: c.ListenAddrs()})
	wantCode(t, r.Check(t.Context()), flashsale.CodeUnavailable)
	wantCode(t, r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}), flashsale.CodeUnavailable)
	if err := c.CreateTopic(topic, 2, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(t.Context(), []flashsale.Event{event("r1", 1)}); err != nil {
		t.Fatal(err)
	}
	stored(t, c.ListenAddrs(), c, 1)
}

func TestClosed(t *testing.T) {
	t.Parallel()
	c := startKafka(t, kfake.SeedTopics(1, topic))
	r := newRelay(t, kafkarelay.Config{Brokers: c.ListenAddrs()})
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
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]kafkarelay.Config{
		"a topic with a space": {Topic: "a b"},
		"the topic ..":         {Topic: ".."},
		"a negative time":      {Timeout: -1},
		"much in flight":       {InFlight: 100_001},
		"an option of no use":  {Options: []kgo.Opt{kgo.ProducerBatchMaxBytes(-5)}},
	} {
		if _, err := kafkarelay.New(cfg); flashsale.CodeOf(err) != flashsale.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
