package kafkarelay

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Config says which topic events go to. The zero Config means the topic headgate.sale of a broker on 127.0.0.1:9092.
type Config struct {
	// Brokers are host:port of some of the brokers. Default 127.0.0.1:9092.
	Brokers []string
	// Topic is never made by the relay: 1 to 249 letters, digits and . _ -. Default "headgate.sale".
	Topic string
	// Timeout bounds Publish and Check, beside the caller's context. Default 10 s.
	Timeout time.Duration
	// InFlight is how many records wait for their acknowledgement at a time, 1 to 100,000. Default 10,000.
	InFlight int
	// Options are those of franz-go, such as TLS and SASL. The relay's own promises (acks, idempotence, the partition of a key) cannot be
	// taken back by them.
	Options []kgo.Opt
}

// Bounds.
const (
	maxInFlight = 100_000
	maxTopic    = 249
)

func (c Config) withDefaults() Config {
	if len(c.Brokers) == 0 {
		c.Brokers = []string{"127.0.0.1:9092"}
	}
	if c.Topic == "" {
		c.Topic = "headgate.sale"
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.InFlight == 0 {
		c.InFlight = 10_000
	}
	return c
}

func (c *Config) validate() error {
	switch {
	case len(c.Topic) > maxTopic || !isTopic(c.Topic):
		return invalid("Config.Topic %q is not 1 to %d letters, digits, dots, underscores and hyphens", c.Topic, maxTopic)
	case c.Timeout < time.Millisecond:
		return invalid("Config.Timeout is %s; give 1ms or more", c.Timeout)
	case c.InFlight < 1 || c.InFlight > maxInFlight:
		return invalid("Config.InFlight is %d; give 1 to %d", c.InFlight, maxInFlight)
	}
	return nil
}

// options puts what the relay promises after the caller's own.
func (c *Config) options() []kgo.Opt {
	options := append([]kgo.Opt{kgo.ClientID("headgate-sale-relay"), kgo.SeedBrokers(c.Brokers...)}, c.Options...)
	return append(options,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // by the key, as Kafka's own clients do
		kgo.MaxBufferedRecords(c.InFlight),
		// Publish ends with its time even if a broker never says what became of a record: the id tells readers that it came twice.
		kgo.AllowIdempotentProduceCancellation(),
	)
}

func isTopic(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && s != "." && s != ".."
}

func invalid(format string, args ...any) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "kafkarelay: " + fmt.Sprintf(format, args...)}
}
