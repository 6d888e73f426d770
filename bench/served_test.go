package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// tinySections are the sections of the sale over HTTP as small as they can be.
func tinySections() []section {
	return []section{
		saleFlood(floodSize{shoppers: 120, units: 30, connections: 8, within: 200 * time.Millisecond, patience: time.Minute}),
		saleSteady(100), saleClicks(clickSize{clicks: 2000, shoppers: 60, units: 20, callers: 8}),
	}
}

// TestServedSections takes each of them through one round, and wants what must be so at any size.
func TestServedSections(t *testing.T) {
	t.Parallel()
	for _, s := range tinySections() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			res, err := measure(s, options{rounds: 1, duration: 200 * time.Millisecond}, io.Discard)
			if errors.Is(err, testservers.ErrSkipped) && os.Getenv("CI") != "true" {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range res.Rows[1:] {
				checkServed(t, res, row)
			}
		})
	}
}

// checkServed wants a figure for each column, that none of the counts of what must not be is above 0, and that all is sold.
func checkServed(t *testing.T, res result, row line) {
	t.Helper()
	if len(row.Median) != len(res.Columns) || len(res.Rows[0].Median) != len(res.Columns) {
		t.Fatalf("%s, %s: %v for %d columns", res.Name, row.Contender, row.Median, len(res.Columns))
	}
	for k, c := range res.Columns {
		goal, got := res.Rows[0].Median[k], row.Median[k]
		switch {
		case c.Name == "units sold" && got != goal, goal == 0 && got != 0, c.Better == higher && got <= 0, c.Name == "calls to Redis" && got <= 0:
			t.Errorf("%s, %s: %s is %v, the goal is %v", res.Name, row.Contender, c.Name, got, goal)
		}
	}
}

func TestGoalLine(t *testing.T) {
	t.Parallel()
	s := section{Name: "x", Title: "X", columns: []column{{"sold", higher, 0}, {"p50", "", 1}, {"p99", lower, 1}, {"errors", lower, 0}}, goals: []float64{100, noGoal, 50, 0}}
	rep := report{Machine: "M", Results: []result{summarise(s, []contender{{name: "Headgate"}}, [][][]float64{{{100, 1, 25, 0}}})}}
	var out bytes.Buffer
	if err := rep.markdown(&out); err != nil {
		t.Fatal(err)
	}
	const want = `Measured on M.

### X

| | sold | p50 | p99 | errors |
|---|---:|---:|---:|---:|
| (the goal) | 100 | – | 50.0 | 0 |
| Headgate | 100 (1.00×) | 1.0 | 25.0 (0.50×) | 0 |
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

func TestReadReply(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status      int
		after, text string
		want        reply
		final       string
	}{
		{201, "", `{"token":"t"}`, reply{201, 0, replyDoc{Token: "t"}}, ""},
		{202, "2", `{"rid":"r","state":"pending"}`, reply{202, 2 * time.Second, replyDoc{RID: "r", State: "pending"}}, "pending r "},
		{200, "", `{"rid":"r","state":"reserved","order_id":"o"}`, reply{200, 0, replyDoc{RID: "r", State: "reserved", OrderID: "o"}}, "reserved r o"},
		{409, "7", `{"code":"sold_out"}`, reply{409, 7 * time.Second, replyDoc{Code: "sold_out"}}, "sold_out"},
	} {
		res := &http.Response{StatusCode: tc.status, Header: http.Header{}}
		if tc.after != "" {
			res.Header.Set("Retry-After", tc.after)
		}
		got, err := readReply(res, []byte(tc.text))
		if err != nil || got != tc.want || got.final() != tc.final || got.pending() != (tc.status == 202) {
			t.Errorf("%+v: got %+v, %q, %v", tc, got, got.final(), err)
		}
	}
	for after, text := range map[string]string{"soon": "{}", "1": "<html>"} {
		if got, err := readReply(&http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {after}}}, []byte(text)); err == nil {
			t.Errorf("Retry-After %q with %q is taken for %+v", after, text, got)
		}
	}
}

// TestVisitors: everybody has an address of their own among those that are set aside for benchmarks.
func TestVisitors(t *testing.T) {
	t.Parallel()
	block, seen := netip.MustParsePrefix("198.18.0.0/15"), map[string]bool{}
	for n := range wholeFlood.shoppers {
		v := newVisitor(n)
		if at, err := netip.ParseAddr(v.address); err != nil || !block.Contains(at) || seen[v.address] {
			t.Fatalf("%s comes from %s", v.user, v.address)
		}
		seen[v.address] = true
	}
}

func TestRedisCalls(t *testing.T) {
	t.Parallel()
	server := testservers.Redis(t)
	before, err := redisCalls(server)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := server.Do("EVAL", "for i = 1, 10 do redis.call('SET', KEYS[1], i) end", "1", "k"); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := redisCalls(server); err != nil || after-before != 3 {
		t.Errorf("%v calls for three scripts of ten commands, %v", after-before, err)
	}
}

func TestOthers(t *testing.T) {
	t.Parallel()
	before := servedCPU{headgate: time.Second, redis: time.Second, database: time.Second, load: time.Second, machine: 10 * time.Second}
	after := servedCPU{headgate: 3 * time.Second, redis: 2 * time.Second, database: 2 * time.Second, load: 2 * time.Second, machine: 20 * time.Second}
	if got := after.since(before).others(10 * time.Second); got != 0.5 {
		t.Errorf("others took %v cores", got)
	}
	if got := (servedCPU{headgate: time.Second}).others(time.Second); got != 0 {
		t.Errorf("others took %v cores: the clocks of a process and of the machine do not agree to the tick", got)
	}
	if c, err := machineCPU(); err != nil || c < cpuTime() {
		t.Errorf("the machine has used %s, this process %s, %v", c, cpuTime(), err)
	}
}
