package leasestore

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Config says how far ahead a Store charges, and how much it may hold. The zero Config works.
type Config struct {
	// Ahead is for how long the units of a lease last at the rate that was seen. The longer it is, the fewer calls, and the
	// more is lost with an instance that crashes. 10 ms to 1 s. Default 0: 100 ms.
	Ahead time.Duration
	// Gap is the time between two calls for a key of which little is left, and at most how long a unit that comes free waits to
	// be found. 1 ms to 1 s. Default 0: 5 ms.
	Gap time.Duration
	// Life is how long units may be held before they are spent: what is older is given back. It bounds by how much a bucket's
	// burst, or a step of the store's clock, is passed: a second's units. 10 ms to 10 s. Default 0: 1 s.
	Life time.Duration
	// MaxKeys is how many keys can have leases; charges of those beyond go to the upstream one by one, and so do those of a slot and
	// key that are longer than 512 bytes together. Each takes some 500 bytes, and up to 1,500 under a high load, and its
	// text. Default (0 or less): 100,000.
	MaxKeys int
	// MaxWaiting is how many takes may wait for a call that another made; those beyond are answered with
	// headgate.CodeOverloaded. Default (0 or less): 16,384.
	MaxWaiting int
	// MaxRefills is how many calls for units may be under way, one for a key; beyond, takes go to the upstream as they are. Default
	// (0 or less): 256.
	MaxRefills int
	// Timeout ends a call for units, which does not end with the context of the take that needs them. Default (0 or less): 1 s.
	Timeout time.Duration
	// Elapsed is the clock by which leases die: how long it has been since some moment. It is never negative, never goes back, and must not
	// stop while the process is stopped. Default nil: the monotonic clock of the process.
	Elapsed func() time.Duration
	// Observer is told of the calls. Default nil: nobody.
	Observer Observer
}

// Observer is told what a Store charges ahead and gives back. Its methods are called from many goroutines, some of them while a key
// is locked: they must not block, nor call the Store.
type Observer interface {
	// Leased tells of one call for units: how many were asked for and granted, how long it took, and the code of its failure, ""
	// if there was none. A call that asked for 0 looked for the time of a denial.
	Leased(slot string, asked, granted int64, took time.Duration, code string)
	// Returned tells of unspent units: how many were given back to the upstream, and how many were lost because it would not
	// have taken them, or could not be asked.
	Returned(slot string, refunded, lost int64)
}

type nobody struct{}

func (nobody) Leased(string, int64, int64, time.Duration, string) {}
func (nobody) Returned(string, int64, int64)                      {}

func (c Config) withDefaults() Config {
	c.Ahead = within(c.Ahead, 100*time.Millisecond, 10*time.Millisecond, time.Second)
	c.Gap = within(c.Gap, 5*time.Millisecond, time.Millisecond, time.Second)
	c.Life = within(c.Life, time.Second, 10*time.Millisecond, 10*time.Second)
	c.MaxKeys = orDefault(c.MaxKeys, 100_000)
	c.MaxWaiting = orDefault(c.MaxWaiting, 16_384)
	c.MaxRefills = orDefault(c.MaxRefills, 256)
	if c.Timeout <= 0 {
		c.Timeout = time.Second
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	return c
}

// within is d, cut to the bounds, or the default if it is not set.
func within(d, def, least, most time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return min(max(d, least), most)
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

func newError(code headgate.Code, cause error, message string) *headgate.Error {
	return &headgate.Error{Code: code, Charge: -1, Message: "leasestore: " + message, Err: cause}
}
