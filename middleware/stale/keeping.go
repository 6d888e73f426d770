package stale

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Keeping takes an answer down while it is given. Header comes first, then Write for every part of the body, then End, and
// Close when the client has the answer. It is safe for concurrent use, but for the order of what is written.
type Keeping struct {
	c      *Cache
	q      *Query
	flight *flight
	born   time.Time

	mu      sync.Mutex
	over    bool     // whether the flight has landed
	answer  *variant // nil until there is a header
	length  int64    // of the body as announced, -1 for unknown
	body    []byte
	counted int64 // bytes of it that count as being on their way
}

// Header notes the beginning of an answer, with the header as the service gave it. It reports whether the answer is being
// taken down; if not, those that wait have been told so.
func (k *Keeping) Header(status int, h http.Header) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return false
	}
	k.answer = newVariant(k.q, k.flight.key.key, status, h, k.born)
	k.length = -1
	if announced := h["Content-Length"]; len(announced) > 0 && status != http.StatusNotModified {
		n, err := strconv.ParseUint(announced[0], 10, 63)
		if err != nil || int64(n) > k.c.cfg.MaxAnswer {
			k.answer = nil
		}
		k.length = int64(n)
	}
	switch {
	case k.answer == nil:
		k.land(nil, status < 500) // of a service in trouble one answer after the other is enough
		return false
	case status == http.StatusNotModified || k.length == 0:
		k.landWhole()
		return false
	}
	k.c.begun(k.flight)
	return true
}

// Write takes a part of the body down. It reports whether the answer is still being taken down; if not, it has not taken
// this part.
func (k *Keeping) Write(p []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over || k.answer == nil {
		return false
	}
	size := int64(len(k.body) + len(p))
	if size > k.c.cfg.MaxAnswer || k.length >= 0 && size > k.length || !k.grow(size) {
		k.land(nil, true)
		return false
	}
	k.body = append(k.body, p...)
	return true
}

// grow makes room for a body of that size, unless too much is on its way.
func (k *Keeping) grow(size int64) bool {
	room := int64(cap(k.body))
	if size <= room {
		return true
	}
	room = max(size, min(2*room, k.c.cfg.MaxAnswer))
	if k.length > 0 {
		room = min(k.length, max(room, pieces))
	}
	if !k.count(room) {
		return false
	}
	k.body = append(make([]byte, 0, room), k.body...)
	return true
}

// count has that many bytes count as being on their way, unless there are too many.
func (k *Keeping) count(bytes int64) bool {
	more := bytes - k.counted
	if k.c.taking.Add(more) > k.c.cfg.MaxBytes/4 && more > 0 {
		k.c.taking.Add(-more)
		return false
	}
	k.counted = bytes
	return true
}

// Bytes returns what has been taken down. It is read, never written.
func (k *Keeping) Bytes() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.body[:len(k.body):len(k.body)]
}

// End ends the answer; whole tells whether it has ended as it should. Only the first call counts, and none after the answer
// has turned out to be nobody else's.
func (k *Keeping) End(whole bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.over:
	case !whole || k.answer == nil || k.length >= 0 && int64(len(k.body)) != k.length:
		k.land(nil, false)
	default:
		k.landWhole()
	}
}

// Close says that the client has the answer, or will not get it. It ends an answer that has not ended as not whole.
func (k *Keeping) Close() {
	k.End(false)
	k.Forget()
}

// Forget says that Bytes is not needed any more. It has no effect before the end.
func (k *Keeping) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		k.body = nil
		k.count(0)
	}
}

// Refuse says that the answer cannot be kept, for a reason that its header does not show.
func (k *Keeping) Refuse() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.over {
		k.land(nil, true)
	}
}

func (k *Keeping) landWhole() {
	if cap(k.body) > len(k.body)+len(k.body)/4 {
		k.body = bytes.Clone(k.body)
		k.count(int64(cap(k.body)))
	}
	k.answer.body = k.body
	k.answer.measure()
	k.land(k.answer, false)
}

func (k *Keeping) land(v *variant, struck bool) {
	k.over = true
	k.c.land(k, v, struck)
}

// begun notes that the answer of a flight has begun.
func (c *Cache) begun(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.headed = true
}

// freshen makes the kept answer young again of which a 304 says that it is still good (RFC 9111, section 4.3.4). The caller
// holds mu.
func (c *Cache) freshen(q *Query, valid *variant) {
	for _, e := range c.kept[valid.key] {
		old := e.Value.(*variant)
		if !old.matches(q.Header) || !sameValidator(old.header, valid.header) {
			continue
		}
		fresh := &variant{
			key: old.key, vary: old.vary, status: old.status, header: maps.Clone(old.header), body: old.body, born: valid.born, before: valid.before,
		}
		for _, name := range [...]string{"Cache-Control", "Date", "Expires"} {
			if values, given := valid.header[name]; given {
				fresh.header[name] = values
			}
		}
		fresh.measure()
		c.store(fresh)
		return
	}
}

// sameValidator tells whether a 304 speaks of a kept answer: by a strong entity tag, or by the date where there is no tag.
func sameValidator(kept, valid http.Header) bool {
	if tag := first(valid["Etag"]); tag != "" {
		return tag == first(kept["Etag"])
	}
	modified := first(valid["Last-Modified"])
	return modified != "" && modified == first(kept["Last-Modified"])
}
