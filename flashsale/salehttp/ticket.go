package salehttp

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/flashsale"
)

const (
	// ticketLife is how long a ticket can be used.
	ticketLife = 30 * time.Second
	// ticketLimit lets a ticket pass once, for longer than it lives by any clock that is right to a minute.
	ticketLimit = "sliding_log 1/2m"
	ticketSlot  = "sale/ticket"
	// maxSpent bounds the tickets that one process remembers for each spentFor.
	maxSpent = 50_000
	spentFor = 2 * time.Minute
	idBytes  = 16
)

// tickets are what is used once in place of an identity.
type tickets struct {
	keys    *flashsale.TokenKeys
	random  io.Reader
	now     func() time.Time
	limiter headgate.Limiter
	limit   headgate.Limit

	mu sync.Mutex // random's too
	// spent were used since turned, before in the time before that.
	spent, before map[string]struct{}
	turned        time.Time
}

// ticketScope is what a ticket is good for.
type ticketScope struct {
	key flashsale.Key
	rid string
}

// context binds a ticket to its use. None of the parts has a line feed in it.
func (s ticketScope) context() string {
	return "event ticket\n" + s.key.Sale + "\n" + s.key.SKU + "\n" + s.rid
}

// ticketUse is a ticket that is good, if it has not been used.
type ticketUse struct{ id, user string }

// issue makes a ticket: sealed, so that an address that has one in it says nothing of whose it is.
func (t *tickets) issue(scope ticketScope, user string, expires time.Time) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	inside := make([]byte, 8+idBytes, 8+idBytes+len(user))
	binary.BigEndian.PutUint64(inside, uint64(expires.UnixMilli()))
	if _, err := io.ReadFull(t.random, inside[8:]); err != nil {
		return "", &flashsale.Error{Code: flashsale.CodeInternal, Message: "tickets: no randomness", Err: err}
	}
	return t.keys.Seal(t.random, scope.context(), append(inside, user...))
}

// open reads a ticket.
func (t *tickets) open(scope ticketScope, text string) (ticketUse, bool) {
	inside, err := t.keys.Open(scope.context(), text)
	if err != nil || len(inside) <= 8+idBytes {
		return ticketUse{}, false
	}
	expires := time.UnixMilli(int64(binary.BigEndian.Uint64(inside)))
	if !t.now().Before(expires) {
		return ticketUse{}, false
	}
	return ticketUse{id: base64.RawURLEncoding.EncodeToString(inside[8 : 8+idBytes]), user: string(inside[8+idBytes:])}, true
}

// spend uses a ticket up, and reports whether it had not been. The error tells that nobody can say.
func (t *tickets) spend(ctx context.Context, id string) (bool, error) {
	if t.limiter == nil {
		return t.spendHere(id)
	}
	d, err := headgate.Take(ctx, t.limiter, headgate.One(ticketSlot, id, t.limit))
	if err != nil {
		return false, &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "tickets: what was used cannot be asked for", Err: err}
	}
	return d.Allowed, nil
}

// spendHere remembers in this process.
func (t *tickets) spendHere(id string) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.turned) >= spentFor || t.spent == nil {
		t.before, t.spent, t.turned = t.spent, map[string]struct{}{}, now
	}
	if _, used := t.spent[id]; used {
		return false, nil
	}
	if _, used := t.before[id]; used {
		return false, nil
	}
	if len(t.spent) >= maxSpent {
		return false, &flashsale.Error{Code: flashsale.CodeBusy, Message: "tickets: too many are used at a time"}
	}
	t.spent[id] = struct{}{}
	return true, nil
}
