package natsrelay

import (
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Config says what stream events go to. The zero Config works.
type Config struct {
	// Stream is the name of the stream: 1 to 64 letters, digits, _ and -. Default "HEADGATE_SALE". A message that another stream
	// would take is refused.
	Stream string
	// Prefix begins every subject: words of letters, digits, _ and - with dots between them, 128 bytes at most. Default
	// "headgate.sale".
	Prefix string
	// Create makes the stream if there is none. One that is there is never changed.
	Create bool
	// Replicas, MaxAge and MaxBytes are those of a stream that is made: defaults 1 (give 3 on a cluster), 7 days, and no bound. It
	// lies in files, and when it is full it refuses what is new, so that nothing is lost: events wait in the outbox.
	Replicas int
	MaxAge   time.Duration
	MaxBytes int64
	// Duplicates is the stream's window for duplicates: of one that is made, and what Check demands at least of one that is there.
	// Default 2 min.
	Duplicates time.Duration
	// InFlight is how many messages wait for their acknowledgement at a time, 1 to 4096. Default 256.
	InFlight int
	// Timeout is how long a message or a question waits for its answer. Default 5 s.
	Timeout time.Duration
}

// Bounds.
const (
	maxInFlight = 4096
	maxPrefix   = 128
)

func (c Config) withDefaults() Config {
	if c.Stream == "" {
		c.Stream = "HEADGATE_SALE"
	}
	if c.Prefix == "" {
		c.Prefix = "headgate.sale"
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.InFlight == 0 {
		c.InFlight = 256
	}
	for field, fallback := range map[*time.Duration]time.Duration{&c.MaxAge: 7 * 24 * time.Hour, &c.Duplicates: 2 * time.Minute, &c.Timeout: 5 * time.Second} {
		if *field == 0 {
			*field = fallback
		}
	}
	return c
}

func (c *Config) validate() error {
	switch {
	case len(c.Stream) > flashsale.MaxID || !isWord(c.Stream):
		return invalid("Config.Stream %q is not 1 to %d letters, digits, _ and -", c.Stream, flashsale.MaxID)
	case len(c.Prefix) > maxPrefix || !isSubject(c.Prefix):
		return invalid("Config.Prefix %q is not words of letters, digits, _ and - with dots between them", c.Prefix)
	case c.Replicas < 1 || c.Replicas > 5:
		return invalid("Config.Replicas is %d; give 1 to 5", c.Replicas)
	case c.MaxAge < 0 || c.MaxBytes < 0 || c.Duplicates < 0 || c.Timeout < 0:
		return invalid("Config.MaxAge, MaxBytes, Duplicates and Timeout are not below 0")
	case c.Duplicates > c.MaxAge:
		return invalid("Config.Duplicates, %s, is longer than MaxAge, %s", c.Duplicates, c.MaxAge)
	case c.InFlight < 1 || c.InFlight > maxInFlight:
		return invalid("Config.InFlight is %d; give 1 to %d", c.InFlight, maxInFlight)
	}
	return nil
}

// subject is where an event goes. Ids have no *, > or spaces in them, and no ~, so that two sales never share a subject.
func (c *Config) subject(e *flashsale.Event) string {
	return c.Prefix + "." + strings.ReplaceAll(e.Key.Sale, ".", "~") + "." + e.State.String()
}

func isSubject(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if !isWord(word) {
			return false
		}
	}
	return true
}

func isWord(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}
