package engine

import (
	"sync/atomic"

	"github.com/headgate-io/headgate/flashsale"
)

// toldPlaces is how many reservations are remembered at most, in half a megabyte. It is a power of two.
const toldPlaces = 1 << 16

// tellings remember of which reservations this instance has said that they are decided, so that it does not say "pending" of them again: a
// Stock that does not follow yet, or that a failover has set back, says so still. They keep one mark in each place, the latest; a
// mark that is another's costs a question to SQL and nothing else.
type tellings struct {
	places [toldPlaces]atomic.Uint64
}

func (t *tellings) note(rid string) {
	mark := flashsale.Mark(rid)
	if place := &t.places[mark%toldPlaces]; place.Load() != mark {
		place.Store(mark)
	}
}

func (t *tellings) has(rid string) bool {
	mark := flashsale.Mark(rid)
	return t.places[mark%toldPlaces].Load() == mark
}
