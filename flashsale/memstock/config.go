package memstock

import (
	"crypto/rand"
	"io"
	"time"
)

// Defaults of Config.
const (
	DefaultMaxKeys         = 10_000
	DefaultMaxReservations = 2_000_000
	DefaultMaxDead         = 10_000
	DefaultMaxRefusalBytes = 16 << 20
)

// Config says how a Stock works. The zero value is fine.
type Config struct {
	// Now is the clock. It is called under a lock: it must be quick, and must not call the Stock. Default time.Now.
	Now func() time.Time
	// Rand is where the name of the run comes from. Default crypto/rand.Reader.
	Rand io.Reader
	// MaxKeys is how many skus there may be. One that is closed makes room a day later, when the engine removes it. Default
	// DefaultMaxKeys.
	MaxKeys int
	// MaxReservations is how many reservations of all skus together are known before no new one is accepted (CodeBusy). What SQL has is
	// always taken. Default DefaultMaxReservations.
	MaxReservations int
	// MaxDead is how many dead letters a sku keeps; one more drops the oldest, whose reservation stays pending until the sweeper
	// ends it. Default DefaultMaxDead.
	MaxDead int
	// MaxRefusalBytes is how much memory the log of refusals may take: the oldest give way. Default DefaultMaxRefusalBytes.
	MaxRefusalBytes int
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	for _, f := range [...]struct {
		value    *int
		fallback int
	}{{&c.MaxKeys, DefaultMaxKeys}, {&c.MaxReservations, DefaultMaxReservations}, {&c.MaxDead, DefaultMaxDead}, {&c.MaxRefusalBytes, DefaultMaxRefusalBytes}} {
		if *f.value <= 0 {
			*f.value = f.fallback
		}
	}
	return c
}
