package engine

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// maxDevice bounds the name of a device, in bytes. None is fine.
const maxDevice = 255

// TokenRequest asks for an order token: the right to try one reservation.
type TokenRequest struct {
	Key flashsale.Key
	// User is who asks, as the caller has made sure; Device, at most 255 bytes, is what from, "" if that does not matter.
	User, Device string
}

// Token issues an order token, while the sku is on sale and not before: CodeNotOpen tells since when, or not any more. It takes nothing and
// promises nothing. CodeUnknownSale, CodeUnknownSKU, CodeInvalidArgument.
func (e *Engine) Token(ctx context.Context, r TokenRequest) (token string, expires time.Time, err error) {
	if err := checkShopper(r.Key, r.User, r.Device); err != nil {
		return "", time.Time{}, err
	}
	s, err := e.skus.fresh(ctx, r.Key)
	if err != nil {
		return "", time.Time{}, err
	}
	now := e.cfg.Now()
	if err := onSale(s, now); err != nil {
		e.noteRefusal(&ReserveRequest{Key: r.Key, User: r.User}, &ReserveAnswer{Detail: notOnSale(s, now)}, err)
		return "", time.Time{}, err
	}
	expires = now.Add(e.cfg.TokenLife).Truncate(time.Millisecond)
	token, err = e.cfg.Keys.Issue(e.random, r.scope(), expires)
	return token, expires, err
}

func (r *TokenRequest) scope() flashsale.TokenScope {
	return flashsale.TokenScope{Key: r.Key, User: r.User, Device: r.Device}
}

// onSale says why a sku is not on sale.
func onSale(s *flashsale.SKUState, now time.Time) error {
	switch detail := notOnSale(s, now); detail {
	case "":
		return nil
	case "not_yet":
		return errorf(flashsale.CodeNotOpen, "%s is not on sale yet; it will be from %s on", s.Key, s.Settings.OpensAt.UTC().Format(time.RFC3339))
	default:
		return notOpen(s.Key, detail)
	}
}

// notOnSale says in a word why a sku is not on sale, "" if it is.
func notOnSale(s *flashsale.SKUState, now time.Time) string {
	set := &s.Settings
	switch {
	case set.Status != flashsale.Open:
		return string(set.Status)
	case now.Before(set.OpensAt):
		return "not_yet"
	case !now.Before(set.ClosesAt):
		return "ended"
	}
	return ""
}

func notOpen(key flashsale.Key, detail string) error {
	switch detail {
	case "not_yet":
		return errorf(flashsale.CodeNotOpen, "%s is not on sale yet", key)
	case "ended":
		return errorf(flashsale.CodeNotOpen, "%s is not on sale any more", key)
	case "":
		return errorf(flashsale.CodeNotOpen, "%s is not on sale now", key)
	}
	return errorf(flashsale.CodeNotOpen, "%s is not on sale now: it is %s", key, detail)
}

func checkShopper(key flashsale.Key, user, device string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := flashsale.CheckUser(user); err != nil {
		return err
	}
	if len(device) > maxDevice {
		return errorf(flashsale.CodeInvalidArgument, "a device of %d bytes; give at most %d", len(device), maxDevice)
	}
	return nil
}

func checkKey(key flashsale.Key) error {
	if err := flashsale.CheckID("the id of the sale", key.Sale); err != nil {
		return err
	}
	return flashsale.CheckID("the id of the sku", key.SKU)
}

// lockedReader lets many goroutines read from one that is not safe for it.
type lockedReader struct {
	mu   sync.Mutex
	from io.Reader
}

// Read reads all of p or fails.
func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return io.ReadFull(r.from, p)
}

// jittered is what the function of this name returns, by this reader: for pauses, whose lengths decide who comes first.
func (r *lockedReader) jittered(d time.Duration) time.Duration {
	var b [8]byte
	if _, err := r.Read(b[:]); err != nil {
		return d
	}
	return d - d/4 + time.Duration(binary.LittleEndian.Uint64(b[:])%uint64(d/2+1))
}

// jittered returns d, longer or shorter by up to a quarter, so that those who fail together do not come back together.
func jittered(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1)
}
