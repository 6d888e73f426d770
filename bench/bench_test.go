package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	rounds := [][]float64{{9, 1}, {1, 4}, {5, 2}, {7, 3}}
	if got := median(rounds[:3], 0); got != 5 {
		t.Errorf("of three: %v", got)
	}
	if got := median(rounds, 0); got != 6 {
		t.Errorf("of four: %v", got)
	}
	if got := median(rounds, 1); got != 2.5 {
		t.Errorf("of the second column: %v", got)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		better        better
		base, v, want float64
	}{{lower, 10, 25, 2.5}, {higher, 300, 100, 3}, {"", 1, 2, 0}, {lower, 0, 2, 0}, {higher, 2, 0, 0}} {
		if got := times(tc.better, tc.base, tc.v); got != tc.want {
			t.Errorf("%v: got %v", tc, got)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	s := section{Name: "x", Title: "X", notes: "Note.", columns: []column{{"checks/s", higher, 0}, {"p50", "", 1}}}
	contenders := []contender{{name: "Headgate"}, {name: "go-redis/redis_rate"}, {name: "nginx limit_req"}}
	res := summarise(s, contenders, [][][]float64{{{1234567, 1.25}}, {{500, 2}}, {{1e6, 3}}})
	rep := report{Machine: "M", Versions: map[string]string{"github.com/go-redis/redis_rate/v10": "v10.0.1", "nginx": "1.22.1"},
		Results: []result{res, {Title: "Y", Skipped: "no nginx"}}}
	var out bytes.Buffer
	if err := rep.markdown(&out); err != nil {
		t.Fatal(err)
	}
	const want = `Measured on M.

### X

| | checks/s | p50 |
|---|---:|---:|
| Headgate | 1,234,567 | 1.2 |
| go-redis/redis_rate v10.0.1 | 500 (2469.13×) | 2.0 |
| nginx 1.22.1 limit_req | 1,000,000 (1.23×) | 3.0 |

Note.

### Y

Not measured: no nginx
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

func TestScatterVisitsEveryKey(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 1000, inProcessKeys, redisKeys} {
		s, seen := newScatter(3, n), map[int]int{}
		for range s.mask + 1 { // at least one period of the keys below n
			seen[s.next()]++
		}
		if len(seen) != n {
			t.Errorf("of %d keys %d were visited", n, len(seen))
		}
	}
}

func TestParseWrk(t *testing.T) {
	t.Parallel()
	const good = `Running 1s test @ http://127.0.0.1:1
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   708.82us  164.71us   3.46ms   79.20%
    Req/Sec    90.50k     2.40k   93.90k    80.00%
  Latency Distribution
     50%  689.00us
     75%    0.77ms
     90%    0.89ms
     99%    1.29ms
  90032 requests in 1.00s, 18.03MB read
Requests/sec:  89950.25
Transfer/sec:     18.01MB
`
	got, err := parseWrk(good)
	if want := (wrkResult{89950.25, 689, 1290}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "unable to connect", good + "  Non-2xx or 3xx responses: 7\n", good + "  Socket errors: connect 0, read 3, write 0, timeout 0\n"} {
		if _, err := parseWrk(bad); err == nil {
			t.Errorf("%q is taken for good", bad)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-rounds", "0"}, {"-duration", "0s"}, {"-section", "nothing"}, {"-section", "memory,"}} {
		if _, err := parseFlags(args, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	o, err := parseFlags([]string{"-section", "memory,gateway"}, io.Discard)
	if err != nil || !o.wants("memory") || !o.wants("gateway") || o.wants("inprocess") || o.wants("mem") {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestSectionsRun takes every section through one short round.
func TestSectionsRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run([]string{"-json", "-rounds", "1", "-duration", "50ms", "-section", "inprocess,redis128,redis1,several,denials,attack,breaker,gateway,redismemory,leases"}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Results) != 11 {
		t.Fatalf("%d results", len(rep.Results))
	}
	for _, res := range rep.Results {
		for _, row := range res.Rows {
			if len(row.Median) != len(res.Columns) || row.Median[0] <= 0 {
				t.Errorf("%s, %s: %v", res.Name, row.Contender, row.Median)
			}
		}
		if res.Skipped == "" && !strings.Contains(res.Rows[0].Contender, "eadgate") && !slices.Contains([]string{"several", "redismemory", leases}, res.Name) {
			t.Errorf("%s: the first row is %s", res.Name, res.Rows[0].Contender)
		}
	}
}

func TestHeapPerKeyCountsCopiesAndReferencesAlike(t *testing.T) {
	// not parallel: it looks at the heap of the whole process
	const n = 50_000
	type entry struct{ key string }
	open := func(clone bool) func(keys []string) (checker, error) {
		return func(keys []string) (checker, error) {
			kept := make([]entry, n)
			return checker{worker: func() check {
				return func(i int) error {
					kept[i].key = keys[i]
					if clone {
						kept[i].key = strings.Clone(keys[i])
					}
					return nil
				}
			}}, nil
		}
	}
	for _, clone := range []bool{true, false} {
		got, err := heapPerKey(open(clone), n)
		if err != nil || got < -2 || got > 2 {
			t.Errorf("clone %v: %.1f bytes per key beside its text, %v", clone, got, err)
		}
	}
}
