package redisstore_test

import (
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/redisstore"
)

// TestMemory holds the numbers of docs/redis.md, which do not count the key's own text.
func TestMemory(t *testing.T) {
	t.Parallel()
	srv := shared.Get(t)
	s := open(t, redisstore.Config{Namespace: "hg" + newNamespace()}) // as long as a real one
	for text, most := range map[string]int64{
		"token_bucket 100/s burst=200":    100,
		"token_bucket 7/m burst=200":      115,
		"fixed_window 100/1h":             100,
		"fixed_window 100/day":            100,
		"sliding_window 100/1h":           100,
		"leaky_bucket 10/s capacity=1000": 130,
		"sliding_log 10/1h":               180,
	} {
		limit := headgate.MustParseLimit(text)
		slot := "m" + limit.Algorithm().String()[:1]
		for range 8 {
			must(t, s, headgate.One(slot, text[:14]+text[len(text)-3:], limit))
		}
		key := redisstore.KeyOf(s, slot, text[:14]+text[len(text)-3:])
		used := do(t, srv, "MEMORY", "USAGE", key).(int64)
		t.Logf("%s: %d bytes with a key of %d", text, used, len(key))
		if used -= int64(len(key)); used > most {
			t.Errorf("%s: %d bytes beside the key's own, at most %d", text, used, most)
		}
	}
}

// TestExpiry: a key lives a second, and at most two or a bucket's sixteenth, beyond what it is needed for, also where its bytes
// are exchanged in place.
func TestExpiry(t *testing.T) {
	t.Parallel()
	srv := shared.Get(t)
	s := open(t, redisstore.Config{})
	for _, text := range []string{"token_bucket 10/s burst=100", "token_bucket 7/s burst=100", "fixed_window 1000/60s", "sliding_window 1000/60s cells=4", "sliding_log 100/10s", "leaky_bucket 10/s capacity=100", "token_bucket 1/s burst=1000", "leaky_bucket 1/m max_wait=2h"} {
		slack := int64(2100)
		if strings.HasSuffix(text, "burst=1000") || strings.HasSuffix(text, "2h") {
			slack += 450_000
		}
		for range 60 {
			start := time.Now()
			d := must(t, s, headgate.One(text, "k", headgate.MustParseLimit(text)))
			ttl := do(t, srv, "PTTL", redisstore.KeyOf(s, text, "k")).(int64)
			reset := d.Outcomes[0].ResetAfter.Milliseconds()
			if ttl < reset+900-time.Since(start).Milliseconds() || ttl > reset+slack {
				t.Fatalf("%s: idle in %d ms, gone in %d ms", text, reset, ttl)
			}
		}
	}
}

// TestTimedExpiry: with the time passed in, a key lives an hour at least, since real time says nothing of it.
func TestTimedExpiry(t *testing.T) {
	t.Parallel()
	s := open(t, redisstore.Config{})
	limit := headgate.MustParseLimit("token_bucket 10/s burst=100")
	for _, now := range []time.Time{time.Unix(0, 0), time.Unix(1, 0), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)} {
		must(t, s.At(now), headgate.One("s", "k", limit), headgate.One("t", "k", limit))
		for _, slot := range []string{"s", "t"} {
			if ttl := do(t, shared.Get(t), "PTTL", redisstore.KeyOf(s, slot, "k")).(int64); ttl < 3_590_000 || ttl > 3_700_000 {
				t.Errorf("at %s: gone in %d ms", now, ttl)
			}
		}
	}
	for _, now := range []time.Time{time.Date(1849, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(2096, 1, 1, 0, 0, 0, 0, time.UTC), {}} {
		if _, err := headgate.Take(t.Context(), s.At(now), headgate.One("s", "k", limit)); headgate.CodeOf(err) != headgate.CodeInvalidTime {
			t.Errorf("at %s: %v", now, err)
		}
	}
}
