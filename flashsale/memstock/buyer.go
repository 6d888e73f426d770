package memstock

import (
	"slices"

	"github.com/headgate-io/headgate/flashsale"
)

// maxRIDs is how many reservations of a buyer are remembered: the latest.
const maxRIDs = 16

// buyer is what a user holds and has bought. The first rid stands apart because most have one alone, which then needs no slice.
type buyer struct {
	quantity int64
	first    string
	more     []string
}

func (b *buyer) add(rid string, quantity int64) {
	b.quantity += quantity
	b.remember(rid)
}

func (b *buyer) remember(rid string) {
	switch {
	case b.first == "":
		b.first = rid
	case len(b.more) < maxRIDs-1:
		b.more = append(b.more, rid)
	default:
		b.first = b.more[0]
		copy(b.more, b.more[1:])
		b.more[len(b.more)-1] = rid
	}
}

func (b *buyer) drop(rid string) {
	if b.first != rid {
		b.more = slices.DeleteFunc(b.more, func(r string) bool { return r == rid })
		return
	}
	b.first = ""
	if len(b.more) > 0 {
		b.first = b.more[0]
		b.more = slices.Delete(b.more, 0, 1)
	}
}

func (b *buyer) rids() []string {
	if b.first == "" {
		return nil
	}
	return append([]string{b.first}, b.more...)
}

// giveBack counts units that an entry has given back.
func (k *keys) giveBack(e *entry) {
	b, ok := k.buyers[e.user]
	if !ok {
		return
	}
	b.quantity -= e.quantity
	b.drop(e.rid)
	if b.quantity <= 0 {
		delete(k.buyers, e.user)
		return
	}
	k.buyers[e.user] = b
}

// loadBuyer puts a buyer of a snapshot in.
func (k *keys) loadBuyer(from *flashsale.Buyer) {
	b := buyer{quantity: from.Quantity}
	for _, rid := range from.RIDs {
		b.remember(rid)
	}
	k.buyers[from.User] = b
	k.mark(from.User)
}
