package headgate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func TestParseLimit(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"token_bucket 100/s burst=200", "token_bucket 100/s burst=200"},
		{"gcra 10/s", "token_bucket 10/s"},
		{"  token_bucket\t 10/s   burst=20  ", "token_bucket 10/s burst=20"},
		{"token_bucket 10/s burst=10", "token_bucket 10/s"},
		{"token_bucket 0.50/s", "token_bucket 0.5/s"},
		{"token_bucket 2.5/1m burst=3", "token_bucket 2.5/1m"},
		{"token_bucket 007/s", "token_bucket 7/s"},
		{"token_bucket 0/s", "token_bucket 0/s"},
		{"token_bucket 0.000/s burst=7", "token_bucket 0/s burst=7"},
		{"token_bucket 10/1.5h", "token_bucket 10/1h30m"},
		{"token_bucket 10/24h", "token_bucket 10/1d"},
		{"token_bucket 10/d", "token_bucket 10/1d"},
		{"token_bucket 10/ms", "token_bucket 10/1ms"},
		{"token_bucket 10/µs", "token_bucket 10/1us"},
		{"token_bucket 1000000000000/us", "token_bucket 1000000000000/1us"},
		{"token_bucket 999999999999.999/s burst=1", "limit"},
		{"token_bucket 1/36500d", "token_bucket 1/36500d"},
		{"fixed_window 1000/1m", "fixed_window 1000/1m"},
		{"fixed_window 10/h", "fixed_window 10/1h"},
		{"fixed_window 10/hour", "fixed_window 10/hour zone=UTC"},
		{"fixed_window 20000/day zone=Asia/Shanghai", "fixed_window 20000/day zone=Asia/Shanghai"},
		{"fixed_window 1000000000000/36500d", "fixed_window 1000000000000/36500d"},
		{"sliding_log 1000/5m", "sliding_log 1000/5m"},
		{"sliding_window 600/1m cells=6", "sliding_window 600/1m cells=6"},
		{"sliding_window 600/1m cells=1", "sliding_window 600/1m"},
		{"sliding_window 600/60us cells=60", "sliding_window 600/60us cells=60"},
		{"leaky_bucket 10/s capacity=20 max_wait=2s", "leaky_bucket 10/s capacity=20 max_wait=2s"},
		{"leaky_bucket 10/s max_wait=2s capacity=20", "leaky_bucket 10/s capacity=20 max_wait=2s"},
		{"leaky_bucket 10/s max_wait=0", "leaky_bucket 10/s max_wait=0s"},
		{"leaky_bucket 1000000000000/us max_wait=1s", "leaky_bucket 1000000000000/1us max_wait=1s"},
		{"concurrency 50 ttl=60s", "concurrency 50 ttl=1m"},
		{"concurrency 0 ttl=7d", "concurrency 0 ttl=7d"},
	} {
		l, err := headgate.ParseLimit(c.text)
		if c.want == "limit" { // one unit of this one takes no whole microsecond
			if headgate.CodeOf(err) != headgate.CodeInvalidLimit {
				t.Errorf("%q: %v, %v", c.text, l, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if l.String() != c.want {
			t.Errorf("%q reads as %q, want %q", c.text, l, c.want)
		}
		if again, err := headgate.ParseLimit(l.String()); err != nil || again != l {
			t.Errorf("%q does not come back from its text: %v, %v", l, again, err)
		}
	}
}

// Every message, so that a change of one is seen in review. What is left of the arrow follows `limit "…": `.
func TestParseLimitErrors(t *testing.T) {
	long := strings.Repeat("9", 300)
	for _, c := range []struct{ text, want string }{
		{"token 10/s", `algorithm "token" is unknown; nearest is token_bucket`},
		{"TOKEN_BUCKET 10/s", `algorithm "TOKEN_BUCKET" is unknown; nearest is token_bucket`},
		{"gcar 10/s", `algorithm "gcar" is unknown; nearest is gcra`},
		{"slidng_window 10/s", `algorithm "slidng_window" is unknown; nearest is sliding_window`},
		{"token_bucket", `the count is missing; write token_bucket 100/s burst=200`},
		{"leaky_bucket", `the count is missing; write leaky_bucket 10/s capacity=20`},
		{"concurrency", `the count is missing; write concurrency 50 ttl=60s`},
		{"token_bucket 10", `the period is missing in "10"; write COUNT/PERIOD as in token_bucket 100/s burst=200`},
		{"fixed_window 10/", `the period is missing in "10/"; write COUNT/PERIOD as in fixed_window 1000/1m`},
		{"sliding_log 10", `the period is missing in "10"; write COUNT/PERIOD as in sliding_log 5/5m`},
		{"sliding_window 10", `the period is missing in "10"; write COUNT/PERIOD as in sliding_window 600/1m cells=6`},
		{"token_bucket /s", `count "": is not a number`},
		{"token_bucket ten/s", `count "ten": is not a number`},
		{"token_bucket NaN/s", `count "NaN": is not a number`},
		{"token_bucket 1e3/s", `count "1e3": is not a whole number in plain digits; nearest is 1000`},
		{"token_bucket +Inf/s", `count "+Inf": is not a whole number in plain digits; nearest is 1000000000000`},
		{"token_bucket .5/s", `count ".5": is not a number of digits such as 10 or 0.2`},
		{"token_bucket 5./s", `count "5.": is not a number of digits such as 10 or 0.2`},
		{"token_bucket 1.2.3/s", `count "1.2.3": is not a number of digits such as 10 or 0.2`},
		{"token_bucket -10/s", `count -10 is negative; nearest is 0`},
		{"token_bucket -0.5/s", `count "-0.5": is negative; nearest is 0`},
		{"token_bucket --0.5/s", `count "--0.5": is not a number of digits such as 10 or 0.2`},
		{"token_bucket 1000000000001/s", `count 1000000000001 is outside 0 to 1000000000000; nearest is 1000000000000`},
		{"token_bucket 1000000000000.1/s", `count 1000000000000.1 is outside 0 to 1000000000000; nearest is 1000000000000`},
		{"token_bucket 99999999999999999999/s", `count 9223372036854775807 is outside 0 to 1000000000000; nearest is 1000000000000`},
		{"token_bucket 1234567890.1234567/s", `count 1234567890.1234567 has more than 15 significant digits (its numerator in lowest terms is over 10^15); round it`},
		{"token_bucket 1.00000000000000000001/s", `count "1.00000000000000000001": has more than 18 decimal places; round it`},
		{"token_bucket 123456.123456789012345678/s", `count "123456.123456789012345678": has too many digits; keep 15`},
		{"token_bucket 0.000000000000001/s", `rate 0.000000000000001/s: one unit takes longer than 36500d; raise the count or shorten the period`},
		{"token_bucket 10/0s", `period 0s is outside 1us to 36500d; nearest is 1us`},
		{"token_bucket 10/-1s", `period -1s is outside 1us to 36500d; nearest is 1us`},
		{"token_bucket 10/1ns", `period 1ns is outside 1us to 36500d; nearest is 1us`},
		{"token_bucket 10/1500ns", `period 1.5µs is no whole number of microseconds; nearest is 2us`},
		{"token_bucket 10/36501d", `period: 36501d is outside 1us to 36500d; nearest is 36500d`},
		{"token_bucket 10/-1d", `period: -1d is outside 1us to 36500d; nearest is 1us`},
		{"token_bucket 10/876001h", `period 876001h is outside 1us to 36500d; nearest is 36500d`},
		{"token_bucket 10/99999999999999999999h", `period: 99999999999999999999h is outside 1us to 36500d; nearest is 36500d`},
		{"token_bucket 10/5", `period: "5" has no unit; nearest is 5s`},
		{"token_bucket 10/sec", `period: "sec" is not a period; nearest is s`},
		{"token_bucket 10/second", `period: "second" is not a period; nearest is s`},
		{"token_bucket 10/1x", `period: "1x" is not a period such as 1m, 1h30m or 7d`},
		{"token_bucket 10/1xd", `period: "1xd" is not a number of days such as 7d`},
		{"token_bucket 10/day", `day is a calendar unit, which only fixed_window has; nearest is 10/1d`},
		{"sliding_log 10/week", `week is a calendar unit, which only fixed_window has; nearest is 10/7d`},
		{"leaky_bucket 10/month capacity=3", `month is a calendar unit, which only fixed_window has; nearest is 10/30d`},
		{"sliding_window 10/hour", `hour is a calendar unit, which only fixed_window has; nearest is 10/1h`},
		{"fixed_window 10/days", `period: "days" is not a period; nearest is day`},
		{"token_bucket 10/s burst", `option burst has no value; write burst=VALUE`},
		{"token_bucket 10/s burst=", `option burst has no value; write burst=VALUE`},
		{"token_bucket 10/s burst=0", `burst=0 is below 1; nearest is burst=10`},
		{"token_bucket 10/s burst=-3", `burst=-3 is below 1; nearest is burst=10`},
		{"token_bucket 10/s burst=1.5", `burst=1.5: is not a whole number in plain digits; nearest is 2`},
		{"token_bucket 10/s burst=many", `burst=many: is not a number`},
		{"token_bucket 10/s burst=1000000000001", `burst=1000000000001 is outside 1 to 1000000000000; nearest is burst=1000000000000`},
		{"token_bucket 10/s brust=5", `option "brust" is unknown; nearest is burst=`},
		{"token_bucket 10/s 5", `option "5" is unknown; nearest is burst=`},
		{"token_bucket 10/s burst=5 burst=6", `option burst is given twice; keep one`},
		{"token_bucket 1/36500d burst=2", `burst=2 at 1/36500d takes longer than 36500d to fill; nearest is burst=1`},
		{"token_bucket 1/1d burst=36501", `burst=36501 at 1/1d takes longer than 36500d to fill; nearest is burst=36500`},
		{"token_bucket 1000000000000/us burst=1", `burst=1 at 1000000000000/1us is full within less than 1us; nearest is burst=1000000000000`},
		{"token_bucket 7000000/s burst=6", `burst=6 at 7000000/s is full within less than 1us; nearest is burst=7`},
		{"fixed_window 1.5/1m", `count "1.5": is not a whole number in plain digits; nearest is 2`},
		{"fixed_window -1/1m", `count -1 is outside 0 to 1000000000000; nearest is 0`},
		{"fixed_window 10/1m cells=6", `option "cells" is unknown; nearest is zone=`},
		{"fixed_window 10/1m zone=UTC", `zone= needs a calendar unit: write 10/day zone=UTC, or leave the zone out`},
		{"fixed_window 10/day zone=Local", `zone=Local means another zone on every machine; name one such as zone=Europe/Berlin`},
		{"fixed_window 10/day zone=Asia/Shangai", `zone=Asia/Shangai is not in the time zone database; write a name such as zone=UTC or zone=Asia/Shanghai`},
		{"fixed_window 10/day zone=../../etc/passwd", `zone=../../etc/passwd is not in the time zone database; write a name such as zone=UTC or zone=Asia/Shanghai`},
		{"fixed_window x/day", `count "x": is not a number`},
		{"sliding_log 1001/1m", `count 1001 is outside 0 to 1000; nearest is 1000`},
		{"sliding_log 5/5m burst=1", `option "burst" is unknown: sliding_log takes no options`},
		{"sliding_window 600/1m cells=0", `cells=0 is below 1; nearest is cells=1`},
		{"sliding_window 600/1m cells=61", `cells=61 is outside 1 to 60; nearest is cells=60`},
		{"sliding_window 600/1m cells=7", `cells=7 does not divide the period 1m into whole microseconds; nearest is cells=6`},
		{"sliding_window 600/7us cells=6", `cells=6 does not divide the period 7us into whole microseconds; nearest is cells=7`},
		{"leaky_bucket 10/s", `the queue has no bound; add capacity=N, max_wait=D or both`},
		{"leaky_bucket 10/s capacity=0", `capacity=0 is below 1; nearest is capacity=1`},
		{"leaky_bucket 10/s capacty=20", `option "capacty" is unknown; nearest is capacity=`},
		{"leaky_bucket 10/s max_wait=-1s", `max_wait -1s is outside 1us to 36500d; nearest is 1us`},
		{"leaky_bucket 10/s max_wait=soon", `max_wait: "soon" is not a period; nearest is s`},
		{"leaky_bucket 1/36500d capacity=2", `capacity=2 at 1/36500d takes longer than 36500d to fill; nearest is capacity=1`},
		{"leaky_bucket 0.5/36500d max_wait=1s", `rate 0.5/36500d: one unit takes longer than 36500d; raise the count or shorten the period`},
		{"concurrency 50", `ttl is missing; write concurrency 50 ttl=60s`},
		{"concurrency 50/s ttl=60s", `concurrency has no period; write concurrency 50 ttl=60s`},
		{"concurrency 50 ttl=0s", `ttl 0s is outside 1us to 36500d; nearest is 1us`},
		{"concurrency 50 ttl=60", `ttl: "60" has no unit; nearest is 60s`},
		{"concurrency -1 ttl=1s", `count -1 is outside 0 to 1000000000000; nearest is 0`},
		{"", "the limit is empty; write one such as token_bucket 100/s burst=200"},
		{long, "a limit of 300 bytes is too long; 256 are allowed"},
	} {
		_, err := headgate.ParseLimit(c.text)
		if headgate.CodeOf(err) != headgate.CodeInvalidLimit {
			t.Errorf("%q: error %v", c.text, err)
			continue
		}
		_, got, ok := strings.Cut(err.Error(), `": `)
		if c.text == "" || c.text == long || !ok {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestMustParseLimitPanicsOnlyOnBadText(t *testing.T) {
	if l := headgate.MustParseLimit("sliding_log 5/5m"); l.Algorithm() != headgate.AlgSlidingLog {
		t.Errorf("got %s", l)
	}
	defer func() {
		if err, ok := recover().(error); !ok || headgate.CodeOf(err) != headgate.CodeInvalidLimit {
			t.Errorf("recovered %v", err)
		}
	}()
	headgate.MustParseLimit("nonsense")
}

func TestConstructorsRefuse(t *testing.T) {
	second := time.Second
	for name, make := range map[string]func() error{
		"a fraction without a decimal form": func() error { _, err := headgate.NewTokenBucket(headgate.PerFraction(1, 3, second), 1); return err },
		"a fraction of 40 places":           func() error { _, err := headgate.NewTokenBucket(headgate.PerFraction(1, 1<<40, second), 1); return err },
		"a denominator of zero":             func() error { _, err := headgate.NewTokenBucket(headgate.PerFraction(1, 0, second), 1); return err },
		"a negative denominator":            func() error { _, err := headgate.NewTokenBucket(headgate.PerFraction(1, -5, second), 1); return err },
		"the least number":                  func() error { _, err := headgate.NewTokenBucket(headgate.Per(math.MinInt64, second), 1); return err },
		"the zero rate":                     func() error { _, err := headgate.NewTokenBucket(headgate.Rate{}, 1); return err },
		"a negative burst":                  func() error { _, err := headgate.NewTokenBucket(headgate.Per(1, second), -1); return err },
		"a window without a period":         func() error { _, err := headgate.NewFixedWindow(1, 0); return err },
		"no calendar unit":                  func() error { _, err := headgate.NewCalendarWindow(1, headgate.NotCalendar, ""); return err },
		"an unknown calendar unit":          func() error { _, err := headgate.NewCalendarWindow(1, headgate.Month+1, ""); return err },
		"a large log":                       func() error { _, err := headgate.NewSlidingLog(headgate.MaxLogCount+1, second); return err },
		"negative cells":                    func() error { _, err := headgate.NewSlidingWindow(1, second, -1); return err },
		"a queue without bounds":            func() error { _, err := headgate.NewLeakyBucket(headgate.Per(1, second)); return err },
		"a capacity of zero": func() error {
			_, err := headgate.NewLeakyBucket(headgate.Per(1, second), headgate.Capacity(0))
			return err
		},
		"a negative wait": func() error {
			_, err := headgate.NewLeakyBucket(headgate.Per(1, second), headgate.MaxWait(-1))
			return err
		},
		"slots without a ttl":        func() error { _, err := headgate.NewConcurrency(1, 0); return err },
		"a negative number of slots": func() error { _, err := headgate.NewConcurrency(-1, second); return err },
	} {
		if err := make(); headgate.CodeOf(err) != headgate.CodeInvalidLimit {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPace(t *testing.T) {
	for _, c := range []struct {
		text            string
		whole, rem, den int64
	}{
		{"token_bucket 100/s", 10_000, 0, 1},
		{"token_bucket 7/s", 142_857, 1, 7},
		{"token_bucket 0.3/s", 3_333_333, 1, 3},
		{"token_bucket 1000000000000/s burst=1000000", 0, 1, 1_000_000},
		{"token_bucket 999999999999.999/s burst=1000000000000", 0, 1_000_000_000, 999_999_999_999_999},
		{"token_bucket 1/36500d", 3_153_600_000_000_000, 0, 1},
		{"token_bucket 0/s", 0, 0, 0},
	} {
		whole, rem, den := headgate.MustParseLimit(c.text).(headgate.TokenBucket).Pace()
		if whole != c.whole || rem != c.rem || den != c.den {
			t.Errorf("%s: %d + %d/%d µs, want %d + %d/%d", c.text, whole, rem, den, c.whole, c.rem, c.den)
		}
	}
}

// FuzzParseLimit looks for a text that panics, that is accepted without coming back from its own text, or whose error is
// not one for the reader.
func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{
		"token_bucket 100/s burst=200", "gcra 0.2/s", "fixed_window 20000/day zone=Asia/Shanghai", "fixed_window 7/month", "sliding_log 5/5m",
		"sliding_window 600/1m cells=6", "leaky_bucket 10/s capacity=20 max_wait=2s", "concurrency 50 ttl=60s", "token_bucket 999999999999.999/7us burst=1000000000000",
		"token_bucket 1/36500d", "token_bucket 0.000000000000000001/1us", "fixed_window -1/-1s", "token_bucket \x00/s", "concurrency 1 ttl=9223372036854775807ns", "sliding_window 1/1us cells=60",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			if headgate.CodeOf(err) != headgate.CodeInvalidLimit || err.Error() == "" || l != nil {
				t.Fatalf("%q: limit %v, error %v", text, l, err)
			}
			return
		}
		again, err := headgate.ParseLimit(l.String())
		if err != nil || again != l {
			t.Fatalf("%q reads as %q, which reads as %v, %v", text, l, again, err)
		}
	})
}
