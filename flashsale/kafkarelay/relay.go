package kafkarelay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// IDHeader is the header of a record that has the event's id.
const IDHeader = "message-id"

// Relay publishes to a topic. It is safe for concurrent use.
type Relay struct {
	cfg    Config
	client *kgo.Client
	closed atomic.Bool
	once   sync.Once
}

var _ flashsale.Relay = (*Relay)(nil)

// New returns a relay. It connects when it is first used, so that a sale starts without its broker: see Check.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(cfg.options()...)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if off, _ := client.OptValue(kgo.DisableIdempotentWrite).(bool); off {
		client.Close()
		return nil, invalid("Config.Options turn idempotent writes off, which the order of a reservation's versions needs")
	}
	return &Relay{cfg: cfg, client: client}, nil
}

// Check asks for the topic. One that is missing, and brokers that do not answer, are CodeUnavailable. Publish needs no Check before it.
func (r *Relay) Check(ctx context.Context) error {
	if err := r.ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &r.cfg.Topic
	req.Topics = append(req.Topics, topic)
	answer, err := req.RequestWith(ctx, r.client)
	if err == nil && len(answer.Topics) == 1 {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if err != nil {
		return r.judge("looking for the topic "+r.cfg.Topic, err)
	}
	return nil
}

// Publish produces the records of events, and waits for all of them; see [flashsale.Relay] for what the error tells. A batch that a
// broker refuses for its size is refused with all that is in it.
func (r *Relay) Publish(ctx context.Context, events []flashsale.Event) error {
	if err := r.ready(); err != nil || len(events) == 0 {
		return err
	}
	records, err := r.records(events)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	var refused error
	for _, result := range r.client.ProduceSync(ctx, records...) { // in the order of their ends
		if result.Err == nil {
			continue
		}
		err := r.judge("event "+string(result.Record.Headers[0].Value)+" to the topic "+r.cfg.Topic, result.Err)
		if flashsale.CodeOf(err) != flashsale.CodeInvalidArgument {
			return err
		}
		if refused == nil {
			refused = err
		}
	}
	return refused
}

func (r *Relay) ready() error {
	if r.closed.Load() {
		return &flashsale.Error{Code: flashsale.CodeClosed, Message: "kafkarelay: the relay is closed"}
	}
	return nil
}

func (r *Relay) records(events []flashsale.Event) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, len(events))
	for i := range events {
		e := &events[i]
		body, err := flashsale.MarshalEvent(e)
		if err != nil {
			return nil, err
		}
		records[i] = &kgo.Record{Topic: r.cfg.Topic, Key: []byte(e.RID), Value: body, Headers: []kgo.RecordHeader{
			{Key: IDHeader, Value: []byte(e.MessageID())}, {Key: "content-type", Value: []byte("application/json")},
		}}
	}
	return records, nil
}

// judge says what an error means: CodeInvalidArgument if it is the record's own, for good. That a topic is missing or forbidden is not.
func (r *Relay) judge(what string, err error) error {
	code := flashsale.CodeUnavailable
	for _, own := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.PolicyViolation} {
		if errors.Is(err, own) {
			code = flashsale.CodeInvalidArgument
		}
	}
	if errors.Is(err, kgo.ErrClientClosed) {
		code = flashsale.CodeClosed
	}
	return &flashsale.Error{Code: code, Message: "kafkarelay: " + what, Err: err}
}

// Close ends the relay and its connections; what is being published fails. Closing twice does no harm.
func (r *Relay) Close() error {
	r.once.Do(func() {
		r.closed.Store(true)
		r.client.Close()
	})
	return nil
}
