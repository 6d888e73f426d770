package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestAlarmHasHysteresis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   string
		values []float64
		want   string // + it went on, - off, . no change
	}{
		{AlarmBacklog, []float64{9999, 10_000, 10_001, 9000, 10_001, 8000, 7000, 0, 0, 0, 0}, "..+......-."},
		{AlarmBacklog, []float64{10_001, 0, 0, 0, 0, 8001, 0, 0, 0, 0, 0}, "+.........-"},
		{AlarmLatency, []float64{0.5, 0.501, 0.45, 0.4, 0.4, 0.4, 0.4, 0.4, 0.5}, ".+.....-."},
		{AlarmRetries, []float64{0.05, 0.06, 0.03, 0.025, 0, 0, 0, 0, 0}, ".+.....-."},
		{AlarmDead, []float64{0, 1, 5, 1, 0, 0}, ".+..-."},
		{AlarmSQL, []float64{1, 0, 1, 2, 3, 0, 0}, "...+.-."},
		{AlarmStock, []float64{1, 0, 1, 2, 3, 0, 0}, "...+.-."},
	} {
		var a alarm
		got := ""
		for _, v := range c.values {
			switch changed := a.step(v, limitsOf(c.kind)); {
			case changed && a.on:
				got += "+"
			case changed:
				got += "-"
			default:
				got += "."
			}
		}
		if got != c.want {
			t.Errorf("%s at %v: %s, want %s", c.kind, c.values, got, c.want)
		}
	}
}

func TestAlarmsOfASKUEndWithIt(t *testing.T) {
	t.Parallel()
	told := &recorder{}
	a := newAlarms(told)
	a.step(AlarmDead, "eleven/a", 1, "")
	a.step(AlarmDead, "eleven/b", 1, "")
	a.step(AlarmSQL, "", 2, "")
	a.only(map[string]bool{"eleven/b": true})
	a.step(AlarmDead, "eleven/b", 1, "")
	want := []string{"alarm dead_letters eleven/a true", "alarm dead_letters eleven/b true", "alarm sql  true", "alarm dead_letters eleven/a false"}
	if !slices.Equal(told.lines, want) || len(a.of) != 2 {
		t.Errorf("told %q, %d are on", told.lines, len(a.of))
	}
}

// TestBuckets: a latency lies below the bound of its bucket, and not far below.
func TestBuckets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d     time.Duration
		below time.Duration
	}{
		{-time.Second, time.Microsecond},
		{0, time.Microsecond},
		{15 * time.Microsecond, 16 * time.Microsecond},
		{16 * time.Microsecond, 17 * time.Microsecond},
		{31*time.Microsecond + 999, 32 * time.Microsecond},
		{32 * time.Microsecond, 34 * time.Microsecond},
		{500 * time.Millisecond, 507904 * time.Microsecond},
		{134 * time.Second, 134217728 * time.Microsecond},
		{time.Hour, 134217728 * time.Microsecond},
	} {
		if got := boundOf(bucketOf(c.d)); got != c.below {
			t.Errorf("%s is in the bucket below %s, want %s", c.d, got, c.below)
		}
	}
	for i := range buckets {
		if i > 0 && bucketOf(boundOf(i-1)) != i || bucketOf(boundOf(i)-1) != i {
			t.Fatalf("bucket %d is not from %s to %s", i, boundOf(max(i-1, 0)), boundOf(i))
		}
	}
}

// TestQuantile compares with the sorted list.
func TestQuantile(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{enough, 99, 100, 101, 5000} {
		m := newMeasures()
		list := make([]time.Duration, n)
		for i := range list {
			list[i] = time.Duration(random.ExpFloat64() * float64(100*time.Millisecond))
		}
		for part := range slices.Chunk(list, n/(windowSeconds-1)+1) {
			m.decided(phone, part)
			m.turn(phone)
		}
		slices.Sort(list)
		w := m.turn(phone)
		for _, q := range []float64{0.5, 0.99, 1} {
			exact := list[int(q*float64(n)+0.999999)-1]
			if got := w.quantile(q); got < exact || got > exact+exact/16+2*time.Microsecond {
				t.Errorf("of %d, the quantile %v is %s, not above %s by at most 1/16", n, q, got, exact)
			}
		}
	}
}

func TestWindowSlides(t *testing.T) {
	t.Parallel()
	m := newMeasures()
	slow := slices.Repeat([]time.Duration{time.Second}, enough)
	m.decided(phone, slow)
	for i := range 2 * enough {
		m.tried(i%10 == 0)
	}
	for i := range windowSeconds + 2 {
		w, all := m.turn(phone), m.turn(flashsale.Key{})
		if in := i < windowSeconds; (w.quantile(0.99) >= time.Second) != in || (fmt.Sprintf("%.3f", all.repeated()) == "0.111") != in {
			t.Errorf("%d s later: p99 %s, %.3f repeated", i, w.quantile(0.99), all.repeated())
		}
	}
	if len(m.of) != 0 {
		t.Error("a sku that is quiet is still measured")
	}
	// Too few say nothing.
	m.decided(phone, slow[1:])
	m.tried(true)
	if w, all := m.turn(phone), m.turn(flashsale.Key{}); w.quantile(0.99) != 0 || all.repeated() != 0 {
		t.Errorf("of a few: %s, %f", w.quantile(0.99), all.repeated())
	}
	if w := m.turn(flashsale.Key{Sale: "x", SKU: "y"}); !w.empty() {
		t.Error("of an unknown one")
	}
}
