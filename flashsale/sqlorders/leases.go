package sqlorders

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Bounds of leases.
const (
	maxLeaseName = 190 // bytes of a name or a holder
	maxLeaseTime = 24 * time.Hour
)

// Lease implements [flashsale.Leases]. The fence grows whenever the holder changes, and when a lease is taken that was given back; a
// holder that comes back late, before anybody else has come, keeps its fence.
func (o *Orders) Lease(ctx context.Context, name, holder string, ttl time.Duration) (fence int64, held bool, err error) {
	if err := checkLease(name, holder); err != nil {
		return 0, false, err
	}
	if ttl <= 0 || ttl > maxLeaseTime {
		return 0, false, invalidf("a lease of %s; give more than 0s, up to %s", ttl, maxLeaseTime)
	}
	err = o.write(ctx, "Lease", func(t *tx) (err error) {
		fence, held, err = t.lease(name, holder, ttl)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return fence, held, nil
}

func (t *tx) lease(name, holder string, ttl time.Duration) (fence int64, held bool, err error) {
	var by string
	var until int64
	found, err := t.lock("SELECT holder, fence, until_at FROM lease WHERE name = ?", []any{name}, &by, &fence, &until)
	switch {
	case err != nil:
		return 0, false, err
	case !found:
		_, err = t.exec("INSERT INTO lease (name, holder, fence, until_at) VALUES (?, ?, 1, ?)", name, holder, t.now+ttl.Microseconds())
		return 1, true, err
	case by != holder && by != "" && until > t.now:
		return fence, false, nil
	case by != holder:
		fence++
	}
	_, err = t.exec("UPDATE lease SET holder = ?, fence = ?, until_at = ? WHERE name = ?", holder, fence, t.now+ttl.Microseconds(), name)
	return fence, true, err
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
