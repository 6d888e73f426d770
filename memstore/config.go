package memstore

import (
	"log/slog"
	"time"
)

// Config says how large a store may become and how it keeps itself clean. The zero Config works.
type Config struct {
	// MaxKeys bounds the keys of the whole store. Default (0 or less): 1,000,000, which take about 120 MB and their text.
	MaxKeys int
	// MaxKeysPerSlot bounds the keys of one slot, so that a flood at one leaves room for the others. Default (0 or less):
	// half of MaxKeys.
	MaxKeysPerSlot int
	// MaxSlots bounds the slots that have state. A slot is named by the program's text, so a store that meets more of them
	// is used wrongly: a charge of one more slot is refused with headgate.CodeOverloaded. Default (0 or less): 10,000.
	MaxSlots int
	// SweepInterval is the time between two steps of the sweeper, each of which looks at 4096 keys or so and forgets those
	// that are idle. While keys overflow it runs ten times as often. Default 0: 100 ms. Negative: never, for programs
	// whose keys are few.
	SweepInterval time.Duration
	// Now is the clock. Default nil: the wall clock, which is followed to a millisecond and within 100 ms when it is set.
	Now func() time.Time
	// Logger gets a warning when a slot is full. Default nil: nothing is logged.
	Logger *slog.Logger
	// Observer is told the figures of [Store.Stats] after each step of the sweeper. Default nil: nobody.
	Observer Observer
}

// Observer is told how full a store is. It is called by one goroutine at a time and must return soon.
type Observer interface {
	// ObserveKeys tells how many keys and slots there are now, and how many takes had to use an overflow state and how many
	// idle keys were forgotten since the store was made.
	ObserveKeys(keys, slots int, overflowed, forgotten uint64)
}

func (c Config) withDefaults() Config {
	if c.MaxKeys <= 0 {
		c.MaxKeys = 1_000_000
	}
	if c.MaxKeysPerSlot <= 0 {
		c.MaxKeysPerSlot = max(1, c.MaxKeys/2)
	}
	c.MaxKeysPerSlot = min(c.MaxKeysPerSlot, c.MaxKeys)
	if c.MaxSlots <= 0 {
		c.MaxSlots = 10_000
	}
	if c.SweepInterval == 0 {
		c.SweepInterval = 100 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
