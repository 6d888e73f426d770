package model

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// bookModel is the simple model: it hears of each version of each reservation, in the order in which SQL has committed them, and
// knows the table of states, nothing else.
type bookModel struct {
	sale  *flashsale.Sale
	rids  map[string]*ridModel
	users map[string]int64 // key and user to units held and bought
	held  map[flashsale.Key]int64
	sold  map[flashsale.Key]int64
	wrong []string
}

type ridModel struct {
	state   flashsale.State
	version int64
	until   time.Time
	granted bool
	first   flashsale.Event
	ends    int
}

func newBookModel(sale *flashsale.Sale) *bookModel {
	return &bookModel{sale: sale, rids: map[string]*ridModel{}, users: map[string]int64{}, held: map[flashsale.Key]int64{}, sold: map[flashsale.Key]int64{}}
}

func (m *bookModel) bad(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// hear takes an event.
func (m *bookModel) hear(e *flashsale.Event) {
	r := m.rids[e.RID]
	if r == nil {
		r = &ridModel{state: flashsale.Pending, first: *e}
		m.rids[e.RID] = r
	}
	switch {
	case e.Version != r.version+1:
		m.bad("I5: %s goes from version %d to %d", e.RID, r.version, e.Version)
	case !r.state.CanBecome(e.State):
		m.bad("I8: %s goes from %s to %s", e.RID, r.state, e.State)
	case e.User != r.first.User || e.Quantity != r.first.Quantity || e.Key != r.first.Key:
		m.bad("I5: %s was %+v and is %+v", e.RID, r.first, *e)
	}
	m.times(r, e)
	m.move(r.state, e)
	if e.State.Terminal() {
		if r.ends++; r.ends > 1 {
			m.bad("I5: %s has ended %d times", e.RID, r.ends)
		}
	}
	r.state, r.version = e.State, e.Version
}

// times holds the time to pay: nothing expires before it.
func (m *bookModel) times(r *ridModel, e *flashsale.Event) {
	switch e.State {
	case flashsale.Reserved:
		if r.version == 0 {
			r.until = e.At.Add(m.sale.Hold)
		}
	case flashsale.Confirming:
		if !e.At.Before(r.until) {
			m.bad("T3: %s begins to be paid at %s, after its time %s", e.RID, e.At, r.until)
		}
		if granted := e.At.Add(m.sale.PayTime); !r.granted && granted.After(r.until) {
			r.until = granted
		}
		r.granted = true
	case flashsale.Expired:
		if e.At.Before(r.until) {
			m.bad("I10: %s has expired at %s, before its time %s", e.RID, e.At, r.until)
		}
	}
}

func (m *bookModel) move(from flashsale.State, e *flashsale.Event) {
	// SQL has no pending ones: what comes from there is new.
	was := from.Class()
	if from == flashsale.Pending {
		was = flashsale.Free
	}
	count := func(class flashsale.Class, n int64) {
		switch class {
		case flashsale.Held:
			m.held[e.Key] += n
		case flashsale.Sold:
			m.sold[e.Key] += n
		default:
			return
		}
		m.users[e.Key.String()+"/"+e.User] += n
	}
	count(was, -e.Quantity)
	count(e.State.Class(), e.Quantity)
	if n := m.users[e.Key.String()+"/"+e.User]; n > m.limit(e.Key) || n < 0 {
		m.bad("I6: after %s %s the user %s has %d units, the purchase limit is %d", e.RID, e.State, e.User, n, m.limit(e.Key))
	}
	if m.held[e.Key] < 0 || m.sold[e.Key] < 0 {
		m.bad("I1: after %s %s, held %d, sold %d", e.RID, e.State, m.held[e.Key], m.sold[e.Key])
	}
}

func (m *bookModel) limit(key flashsale.Key) int64 {
	for i := range m.sale.SKUs {
		if m.sale.SKUs[i].ID == key.SKU {
			return m.sale.SKUs[i].PurchaseLimit
		}
	}
	return 0
}
