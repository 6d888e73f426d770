package demo

import (
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// flight is what the parts of the demo note about one request of the crowd while it is under way: the gateway, which rule
// denied it; the shop, how long it worked. Its name travels in a header; nobody outside can guess it.
type flight struct {
	id     string
	denied atomic.Pointer[string] // the rule; nil if allowed or not judged
	worked atomic.Int64           // nanoseconds in the shop
}

// flights holds the requests that are under way; there are never more than the crowd has connections and waiting clicks.
type flights struct {
	secret string // every name begins with it
	next   atomic.Uint64
	open   sync.Map // id → *flight
}

func newFlights() *flights { return &flights{secret: rand.Text()} }

func (fl *flights) begin() *flight {
	f := &flight{id: fl.secret + "." + strconv.FormatUint(fl.next.Add(1), 36)}
	fl.open.Store(f.id, f)
	return f
}

func (fl *flights) end(f *flight) { fl.open.Delete(f.id) }

// get returns a flight by its number, nil for a request that is not of the crowd.
func (fl *flights) get(id string) *flight {
	if id == "" {
		return nil
	}
	if f, ok := fl.open.Load(id); ok {
		return f.(*flight)
	}
	return nil
}

func (fl *flights) worked(id string, d time.Duration) {
	if f := fl.get(id); f != nil {
		f.worked.Store(int64(d))
	}
}
