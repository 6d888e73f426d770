package sqlorders

import (
	"context"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Bounds of leases.
const (
	maxLeaseName = 190 // bytes of a name or a holder
	maxLeaseTime = 24 * time.Hour
	maxSightings = 1000 // leases that are watched
)

// leaseRow is a lease as it stands. Life is how long it was taken for, 0 if that is not known.
type leaseRow struct {
	holder string
	fence  int64
	until  int64
	life   int64
}

// sightings are leases of others that were asked for, and since when they have been seen as they are, by a clock that is not the
// database's: if that is set back, a lease whose holder has died ends late by it, and never if it is set back far enough.
type sightings struct {
	now  func() time.Time
	mu   sync.Mutex
	seen map[string]sighting
}

type sighting struct {
	leaseRow
	since time.Time
}

func newSightings(now func() time.Time) *sightings {
	if now == nil {
		now = time.Now // not only of the wall: it can be set back itself
	}
	return &sightings{now: now, seen: map[string]sighting{}}
}

// outlived notes a lease that was asked for at a time, and reports whether it has not been renewed for longer than it lasts.
func (s *sightings) outlived(name string, row leaseRow, asked time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.seen[name]; ok && was.leaseRow == row {
		return row.life > 0 && asked.Sub(was.since) >= time.Duration(row.life)*time.Microsecond
	}
	if len(s.seen) >= maxSightings {
		clear(s.seen)
	}
	s.seen[name] = sighting{row, s.now()}
	return false
}

// Lease implements [flashsale.Leases]. The fence grows whenever the holder changes, and when a lease is taken that was given back; a
// holder that comes back late, before anybody else has come, keeps its fence. A lease ends by the clock of the database, or once who asks
// for it has seen it unchanged for as long as it lasts.
func (o *Orders) Lease(ctx context.Context, name, holder string, ttl time.Duration) (fence int64, held bool, err error) {
	if err := checkLease(name, holder); err != nil {
		return 0, false, err
	}
	if ttl <= 0 || ttl > maxLeaseTime {
		return 0, false, invalidf("a lease of %s; give more than 0s, up to %s", ttl, maxLeaseTime)
	}
	err = o.write(ctx, "Lease", func(t *tx) (err error) {
		asked := o.leases.now()
		fence, held, err = t.lease(name, holder, ttl, func(row leaseRow) bool { return o.leases.outlived(name, row, asked) })
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return fence, held, nil
}

func (t *tx) lease(name, holder string, ttl time.Duration, outlived func(leaseRow) bool) (fence int64, held bool, err error) {
	var row leaseRow
	found, err := t.lock("SELECT holder, fence, until_at, life FROM lease WHERE name = ?", []any{name}, &row.holder, &row.fence, &row.until, &row.life)
	until, life := t.now+ttl.Microseconds(), ttl.Microseconds()
	switch {
	case err != nil:
		return 0, false, err
	case !found:
		_, err = t.exec("INSERT INTO lease (name, holder, fence, until_at, life) VALUES (?, ?, 1, ?, ?)", name, holder, until, life)
		return 1, true, err
	case row.holder != holder && row.holder != "" && row.until > t.now && !outlived(row):
		return row.fence, false, nil
	case row.holder != holder:
		row.fence++
	}
	_, err = t.exec("UPDATE lease SET holder = ?, fence = ?, until_at = ?, life = ? WHERE name = ?", holder, row.fence, until, life, name)
	return row.fence, true, err
}

// Release implements [flashsale.Leases].
func (o *Orders) Release(ctx context.Context, name, holder string) error {
	if err := checkLease(name, holder); err != nil {
		return err
	}
	return o.write(ctx, "Release", func(t *tx) error {
		_, err := t.exec("UPDATE lease SET holder = '', until_at = 0 WHERE name = ? AND holder = ?", name, holder)
		return err
	})
}

// fenced is CodeFenced unless a lease is held with this fence: its holder may be late, but nobody has come after it.
func (t *tx) fenced(name string, fence int64) error {
	var holder string
	var current int64
	now := t.now // as of the first lock
	found, err := t.lock("SELECT holder, fence FROM lease WHERE name = ?", []any{name}, &holder, &current)
	t.now = now
	switch {
	case err != nil:
		return err
	case !found || current != fence || holder == "":
		return errorf(flashsale.CodeFenced, "the lease %q has the fence %d, and not %d any more: another instance has taken over", name, current, fence)
	}
	return nil
}

// checkLease bounds names and holders; they are printable ASCII, which every database compares alike.
func checkLease(name, holder string) error {
	for what, s := range map[string]string{"name": name, "holder": holder} {
		if s == "" || len(s) > maxLeaseName {
			return invalidf("the %s of a lease has %d bytes; give 1 to %d", what, len(s), maxLeaseName)
		}
		for _, c := range []byte(s) {
			if c < ' ' || c > '~' {
				return invalidf("the %s of a lease, %q, is not printable ASCII", what, s)
			}
		}
	}
	return nil
}
