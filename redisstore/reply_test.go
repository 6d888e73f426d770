package redisstore

import (
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// FuzzReply: whatever a script answers, there is a verdict or an error, never a panic.
func FuzzReply(f *testing.F) {
	texts := []string{"token_bucket 3/s", "token_bucket 7/m burst=9", "fixed_window 3/s", "fixed_window 3/day", "sliding_log 3/s",
		"sliding_window 3/s cells=4", "leaky_bucket 3/s capacity=3", "leaky_bucket 7/m max_wait=1s", "concurrency 3 ttl=1s", "fixed_window 0/s"}
	states := []string{
		"\x01" + pad(19), "\x02" + pad(40), "\x03" + pad(26), "\x04" + pad(16), "\x05" + pad(15) + "\x00", "\x05" + pad(15) + "\x01" + pad(6),
		"\x06" + pad(54), "\x07" + pad(14), "\x08" + pad(40), "",
	}
	for _, state := range states {
		f.Add("\x03"+state, byte(0))
		f.Add("\x1f"+state+pad(13), byte(2))
	}
	limits := make([]headgate.Limit, len(texts))
	for i, text := range texts {
		limits[i] = headgate.MustParseLimit(text)
	}
	f.Fuzz(func(t *testing.T, reply string, mode byte) {
		var zones algo.Zones
		for _, l := range limits {
			c := headgate.One("s", "k", l)
			c.Mode, c.Holder = headgate.Mode(mode%4), "h"
			a := answerer{zones: &zones, now: 1_700_000_000_000_000, charges: []headgate.Charge{c}}
			if err := a.read(reply, 0); err != nil {
				continue
			}
			a.judge()
			var o headgate.Outcome
			if err := a.outcome(0, a.charged(0), &o); err == nil && o.Allowed != (reply[0]&replyPasses != 0) {
				t.Errorf("%s: %+v of %q", l, o, reply)
			}
		}
		_, _ = readInspection(reply)
	})
}

func pad(n int) string { return string(make([]byte, n)) }
