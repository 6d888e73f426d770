package redisstock_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
	"github.com/headgate-io/headgate/internal/testservers"
)

func TestRefusalLog(t *testing.T) {
	stocktest.ExerciseRefusals(t, func(t *testing.T, now func() time.Time, bytes int) flashsale.RefusalLog {
		return open(t, redisstock.Config{Now: now, MaxRefusalBytes: int64(bytes)})
	})
}

// refusalNumber asks a server for a number about the log.
func refusalNumber(t *testing.T, srv *testservers.RedisServer, command ...any) int64 {
	t.Helper()
	n, err := srv.Do(command...)
	if err != nil {
		t.Fatal(err)
	}
	number, ok := n.(int64)
	if !ok {
		t.Fatalf("%v answers %v", command, n)
	}
	return number
}

// TestRefusalLogMemory: the log takes no more memory than it may, whether its entries are large or small, and ends by itself.
func TestRefusalLogMemory(t *testing.T) {
	srv := testservers.Redis(t)
	const most = 4 << 20
	s := open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Namespace: "ns", MaxRefusalBytes: most})
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{flashsale.MaxRefusalEntry, 3000, 40} {
		for n := 0; n < 2*most; n += size + 90 {
			if size < 100 && n > most/8 {
				break // it is the same from here on
			}
			if err := s.AppendRefusals(t.Context(), bytes.Repeat([]byte{byte(random.Uint32())}, size)); err != nil {
				t.Fatal(err)
			}
		}
		used := refusalNumber(t, srv, "MEMORY", "USAGE", "ns:{refusals}:log", "SAMPLES", 0)
		t.Logf("entries of %d bytes: %d of them take %d bytes", size, refusalNumber(t, srv, "XLEN", "ns:{refusals}:log"), used)
		if used > most*5/4 || used < most/4 {
			t.Errorf("entries of %d bytes: the log takes %d bytes of %d", size, used, most)
		}
	}
	day := flashsale.RefusalsFor.Milliseconds()
	for _, key := range []string{"log", "meta"} {
		if left := refusalNumber(t, srv, "PTTL", "ns:{refusals}:"+key); left <= day-time.Hour.Milliseconds() || left > day {
			t.Errorf("%s goes in %d ms", key, left)
		}
	}
}

// TestRefusalLogGivesWay: where Redis is short of memory stock comes first.
func TestRefusalLogGivesWay(t *testing.T) {
	srv := testservers.Redis(t, testservers.MaxMemory("200mb"))
	var ahead atomic.Int64
	s := open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Namespace: "ns", Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	k := sell(t, s, 100, 1)
	entry := bytes.Repeat([]byte("x"), flashsale.MaxRefusalEntry)
	for range 320 {
		k.check(s.AppendRefusals(t.Context(), entry))
	}
	limit := func(percent int64) { limitMemory(t, srv, percent) }
	was := refusalNumber(t, srv, "XLEN", "ns:{refusals}:log")
	limit(88)
	half := was / 2
	for _, step := range []struct {
		at   time.Duration
		want int64
	}{{0, half}, {0, half}, {50 * time.Second, half}, {70 * time.Second, half / 2}, {80 * time.Second, half / 2}} {
		ahead.Store(int64(step.at))
		limit(88)
		failsWith(t, s.AppendRefusals(t.Context(), entry), flashsale.CodeBusy, "short of memory")
		if n := refusalNumber(t, srv, "XLEN", "ns:{refusals}:log"); n < step.want-1 || n > step.want+1 {
			t.Errorf("after %s: of %d entries %d are left, want %d", step.at, was, n, step.want)
		}
	}
	limit(50)
	k.accept("r1", "u1", 1)
	k.check(s.AppendRefusals(t.Context(), entry)) // there is room again
	limit(97)
	failsWith(t, s.AppendRefusals(t.Context(), entry), flashsale.CodeBusy, "short of memory")
	if n := refusalNumber(t, srv, "EXISTS", "ns:{refusals}:log", "ns:{refusals}:meta"); n != 0 {
		t.Errorf("%d keys of the log are left", n)
	}
	p, err := s.FindRefusals(t.Context(), flashsale.RefusalQuery{Needles: []string{"xxxxxxxx"}})
	if err != nil || len(p.Entries) != 0 || time.Since(p.Since.Add(-time.Duration(ahead.Load()))).Abs() > time.Minute {
		t.Errorf("got %+v, %v", p, err)
	}
}

// limitMemory lets so many percent of a Redis's memory be in use.
func limitMemory(t *testing.T, srv *testservers.RedisServer, percent int64) {
	t.Helper()
	used := refusalNumber(t, srv, "EVAL", "return tonumber(string.match(redis.call('INFO', 'memory'), 'used_memory:(%d+)'))", 0)
	if _, err := srv.Do("CONFIG", "SET", "maxmemory", fmt.Sprint(used*100/percent)); err != nil {
		t.Fatal(err)
	}
}

// TestRefusalLogOfManyGivesWay: of more entries than one call removes the older half goes too, in several calls.
func TestRefusalLogOfManyGivesWay(t *testing.T) {
	srv := testservers.Redis(t, testservers.MaxMemory("200mb"))
	now := time.Now() // no minute passes
	s := open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Namespace: "ns", Now: func() time.Time { return now }})
	const many, each = 5000, 1024 // entries, and how many a call removes
	for range many {
		if err := s.AppendRefusals(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range []int64{many - each, many - 2*each, many / 2, many / 2} {
		limitMemory(t, srv, 88)
		failsWith(t, s.AppendRefusals(t.Context(), []byte("x")), flashsale.CodeBusy, "short of memory")
		if left := refusalNumber(t, srv, "XLEN", "ns:{refusals}:log"); left != want {
			t.Errorf("after %d calls %d entries are left, want %d", n+1, left, want)
		}
	}
	if n := refusalNumber(t, srv, "HEXISTS", "ns:{refusals}:meta", "half"); n != 0 {
		t.Error("it would go on")
	}
}

// TestRefusalLogLost: a log whose half is lost begins anew, and says since when.
func TestRefusalLogLost(t *testing.T) {
	srv := testservers.Redis(t)
	s := open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Namespace: "ns"})
	find := func() flashsale.RefusalPage {
		p, err := s.FindRefusals(t.Context(), flashsale.RefusalQuery{Needles: []string{"needle.."}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	add := func() {
		if err := s.AppendRefusals(t.Context(), []byte("needle..")); err != nil {
			t.Fatal(err)
		}
	}
	add()
	for _, lost := range []string{"meta", "log"} {
		first := find()
		if _, err := srv.Do("DEL", "ns:{refusals}:"+lost); err != nil {
			t.Fatal(err)
		}
		if p := find(); len(p.Entries) != 0 || !p.Since.After(first.Since) {
			t.Errorf("without %s: %+v", lost, p)
		}
		add()
		if p := find(); len(p.Entries) != 1 || !p.Since.After(first.Since) {
			t.Errorf("without %s, after another: %+v", lost, p)
		}
	}
	for _, key := range []string{"log", "meta"} {
		if _, err := srv.Do("SET", "ns:{refusals}:"+key, "foreign"); err != nil {
			t.Fatal(err)
		}
		failsWith(t, s.AppendRefusals(t.Context(), []byte("x")), flashsale.CodeInternal, "foreign data")
		_, err := s.FindRefusals(t.Context(), flashsale.RefusalQuery{Needles: []string{"needle.."}})
		failsWith(t, err, flashsale.CodeInternal, "foreign data")
		if _, err := srv.Do("DEL", "ns:{refusals}:log", "ns:{refusals}:meta"); err != nil {
			t.Fatal(err)
		}
		add()
	}
}

// BenchmarkFindRefusals is what it costs Redis to look through a MiB of the log.
func BenchmarkFindRefusals(b *testing.B) {
	for _, size := range []int{flashsale.MaxRefusalEntry, 100} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := open(b, redisstock.Config{})
			for n := 0; n < 2<<20 && n < 1000*size; n += size {
				if err := s.AppendRefusals(b.Context(), bytes.Repeat([]byte{byte(n)}, size)); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for range b.N {
				if _, err := s.FindRefusals(b.Context(), flashsale.RefusalQuery{Needles: []string{"needle..", "another."}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
