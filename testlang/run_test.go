package testlang_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest/oracle"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/testlang"
)

func parse(t *testing.T, name, text string) *testlang.File {
	t.Helper()
	file, err := testlang.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func run(t *testing.T, name, text string) *testlang.Report {
	t.Helper()
	cfg := testlang.Config{Limiter: oracle.New(oracle.Config{}), Compile: compile}
	report, err := testlang.Run(context.Background(), parse(t, name, text), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestCases(t *testing.T) {
	files, err := filepath.Glob("../limitertest/testdata/*.test")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range run(t, name, string(text)).Failures {
			t.Error(f)
		}
	}
}

// TestFailures checks what a line that fails says.
func TestFailures(t *testing.T) {
	for _, tt := range []struct{ limit, line, want string }{
		{"token_bucket 3/1m", "take 1 -> deny", "expected deny\n\tgot      allow remaining=2 reset_after=20s wait=0s"},
		{"token_bucket 3/1m", "take 1 -> allow remaining=1", "expected allow remaining=1\n\tgot      allow remaining=2"},
		{"token_bucket 3/1m", "take 1 -> remaining=1", "expected remaining=1\n\tgot      remaining=2"},
		{"token_bucket 3/1m", "take 4 -> allow", "expected allow\n\tgot      deny remaining=3 retry_after=never reset_after=0s (cost_exceeds_limit)"},
		{"token_bucket 3/1m", "take 4 -> deny retry_after=1s", "expected deny retry_after=1s\n\tgot      deny retry_after=never"},
		{"token_bucket 3/1m", "take 1 x5 -> allow", "expected allow\n\tgot      deny remaining=0 retry_after=20s reset_after=1m0s (run 4 of 5, at 0s)"},
		{"token_bucket 3/1m", "take 1 x5 -> allowed=4", "expected allowed=4\n\tgot      allowed=3"},
		{"token_bucket 3/1m", "take -1 -> allow", "expected allow\n\tgot      error=invalid_cost (charge 0: cost -1 is negative; use a refund to give back)"},
		{"token_bucket 3/1m", "take -1 x5 -> allowed=3", "expected allowed=3\n\tgot      error=invalid_cost (charge 0: cost -1 is negative; use a refund to give back) (run 1 of 5, at 0s)"},
		{"token_bucket 3/1m", "take 1 -> error=invalid_cost", "expected error=invalid_cost\n\tgot      allow remaining=2 reset_after=20s wait=0s"},
		{"leaky_bucket 3/1m max_wait=1s", "take 1 -> allow remaining=2", "expected allow remaining=2\n\tgot      allow no remaining"},
		{"concurrency 1 ttl=1s", "renew A -> ok", "expected ok\n\tgot      gone"},
		{"concurrency 1 ttl=1s", "release A -> error=closed", "expected error=closed\n\tgot      ok"},
		{"token_bucket 3/1m", "release A -> ok", "expected ok\n\tgot      error=invalid_limit (token_bucket has no holders)"},
	} {
		report := run(t, "x.test", "limit "+tt.limit+"\nat 0s "+tt.line+"\n")
		if len(report.Failures) != 1 {
			t.Errorf("%s: want a failure, got %v", tt.line, report.Failures)
			continue
		}
		if got := report.Failures[0].String(); got != "x.test:2: at 0s "+tt.line+"\n\t"+tt.want {
			t.Errorf("%s: got\n%s", tt.line, got)
		}
	}
}

// TestReport checks the counts, and that a line that fails has its effects all the same.
func TestReport(t *testing.T) {
	report := run(t, "x.test", "limit fixed_window 3/1s\nat 0s take 1 x2 -> deny\nat 0s take 0 -> allow remaining=1\nlimit fixed_window 1/1s\nat 0s..2s every 500ms take 1 x2 -> allowed=3\n")
	if report.Cases != 2 || report.Lines != 3 || report.Runs != 13 || len(report.Failures) != 1 || report.OK() || report.Failures[0].Line != 2 {
		t.Errorf("got %+v", report)
	}
}

// TestApart: cases and runs do not meet, unless they share a namespace.
func TestApart(t *testing.T) {
	store := oracle.New(oracle.Config{})
	file := parse(t, "x.test", "limit fixed_window 1/1h\nat 0s take 1 -> allow\nlimit fixed_window 1/1h\nat 0s take 1 -> allow\n")
	for i, tt := range []struct {
		namespace string
		failures  int
	}{{"", 0}, {"", 0}, {"a", 0}, {"b", 0}, {"a", 2}} {
		report, err := testlang.Run(context.Background(), file, testlang.Config{Limiter: store, Namespace: tt.namespace})
		if err != nil || len(report.Failures) != tt.failures {
			t.Errorf("run %d in %q: want %d failures, got %+v, %v", i, tt.namespace, tt.failures, report, err)
		}
	}
}

// TestNamedAfterUnnamed: a named limit adds to the case of a limit without a name, and begins a case after a policy.
func TestNamedAfterUnnamed(t *testing.T) {
	report := run(t, "x.test", "limit fixed_window 1/1h\nat 0s take 1 -> allow\nlimit b: fixed_window 5/1h\nat 0s take 1 -> deny\nat 0s take 1 on=b -> allow remaining=4\n"+
		"policy <<E\nE\nat 0s GET / -> allow\nlimit c: fixed_window 1/1h\nat 0s take 1 -> allow\n")
	if report.Cases != 3 || !report.OK() {
		t.Errorf("got %+v", report)
	}
}

// plain hides what the oracle can do beside Take.
type plain struct{ headgate.Limiter }

// timedOnly has no ability but the time.
type timedOnly struct {
	headgate.Limiter
	at func(time.Time) headgate.Limiter
}

func (l timedOnly) At(now time.Time) headgate.Limiter { return plain{l.at(now)} }

func TestAbilities(t *testing.T) {
	file := parse(t, "x.test", "limit c: concurrency 1 ttl=1s\nlimit f: fixed_window 5/1h\nat 0s take 1 on=f -> allow\nat 0s refund 1 on=f -> ok\nat 0s renew A on=c -> ok\nat 0s release A on=c -> ok\n")
	for name, limiter := range map[string]headgate.Limiter{"none": nil, "plain": plain{oracle.New(oracle.Config{})}} {
		if _, err := testlang.Run(context.Background(), file, testlang.Config{Limiter: limiter}); headgate.CodeOf(err) != headgate.CodeUnsupported {
			t.Errorf("%s: want %s, got %v", name, headgate.CodeUnsupported, err)
		}
	}
	o := oracle.New(oracle.Config{})
	report, err := testlang.Run(context.Background(), file, testlang.Config{Limiter: timedOnly{o, o.At}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Failures {
		got = append(got, f.Got)
	}
	want := "[error=unsupported (the limiter cannot refund) error=unsupported (the limiter cannot renew) error=unsupported (the limiter cannot release)]"
	if fmt.Sprint(got) != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := testlang.Run(ctx, parse(t, "x.test", "limit fixed_window 1/1h\nat 0s take 1 -> allow\n"), testlang.Config{Limiter: oracle.New(oracle.Config{})})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("want the context's error, got %v", err)
	}
}

// gate is a policy for tests: "deny" in its text denies, "limit" lets one request of a user pass per hour.
type gate struct {
	text    string
	limiter headgate.Limiter
	now     time.Time
	seen    *[]string
}

func compile(_ context.Context, source testlang.PolicySource) (httpverdict.Decider, error) {
	text := string(source.Text)
	if source.Path != "" {
		read, err := os.ReadFile(source.Path)
		if err != nil {
			return nil, err
		}
		text = string(read)
	}
	if strings.Contains(text, "broken") {
		return nil, errors.New("line 1: broken")
	}
	return &gate{text: text, limiter: source.Limiter, seen: &[]string{}}, nil
}

func (g *gate) At(now time.Time) httpverdict.Decider {
	at := *g
	at.now, at.limiter = now, g.limiter.(headgate.Timed).At(now)
	return &at
}

func (g *gate) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	v := &httpverdict.Verdict{Binding: -1, ClientIP: r.Peer, Rule: "gate", Done: func(_ context.Context, res httpverdict.Result) {
		*g.seen = append(*g.seen, fmt.Sprint(res.Status))
	}}
	if ip, err := netip.ParseAddr(r.Dimensions["ip"]); err == nil {
		v.ClientIP = ip
	}
	switch {
	case r.Path == "/seen":
		v.Rule = strings.Join(*g.seen, ",")
	case r.Path == "/echo":
		v.Rule = fmt.Sprint(r.Method, " ", r.Host, r.Path, "?", r.RawQuery, " ", r.Header, r.Dimensions, r.ContentLength)
	case r.Path == "/over":
		v.Shadow = []string{"a", "b"}
		v.Stale = &httpverdict.Stale{Identity: r.RawQuery}
		v.Over = httpverdict.SignOver([]byte("0123456789abcdef"), httpverdict.OverMark{Rules: []string{"x", "y"}})
	case strings.Contains(g.text, "challenge"):
		v.Kind, v.Code = httpverdict.Limited, "challenge"
	case strings.Contains(g.text, "deny"):
		v.Kind, v.Code, v.Rule = httpverdict.Forbidden, "list_denied", "list:bad"
	default:
		d, err := headgate.Take(ctx, g.limiter, headgate.One("gate", r.Dimensions["user"], headgate.MustParseLimit("fixed_window 1/1h")))
		if err != nil {
			v.Kind, v.Code = httpverdict.Unavailable, string(headgate.CodeOf(err))
			break
		}
		v.Limits, v.Binding = []httpverdict.LimitReport{{Name: "gate", Outcome: d.Outcomes[0]}}, 0
		if !d.Allowed {
			v.Kind, v.Code, v.RetryAfter = httpverdict.Limited, "limited", d.Outcomes[0].RetryAfter
		}
	}
	return v
}

// TestPolicies checks requests, and every expectation of a verdict.
func TestPolicies(t *testing.T) {
	report := run(t, "testdata/x.test", `
policy <<END
limit
END
at 0s  GET / user=a -> allow remaining=0 reset_after=1h by=gate ip=192.0.2.1 status=200 wait=0s
at 0s  GET / user=a -> deny retry_after=60m by=gate status=429
at 0s  GET / user=a -> error=limited
at 0s  GET / user=b response=404 -> allow status=404
at 0s  GET /%zz -> deny status=400
at 0s  GET /%zz -> error=malformed_request
at 1h  GET / user=a x3 -> allowed=1
at 1h  GET /over       -> allow over=x,y shadow=a,b
at 1h  GET /over       -> allow stale=public
at 1h  GET /over?me    -> allow stale=own
at 1h  GET /echo       -> allow over= shadow="" stale=
at 0s  GET /seen -> allow by="200,429,429,404,200,429,429,200,200,200,200"
at 0s  POST /a/../echo?q=1 host=SHOP:80 header.X="a b" cookie.c=1 dim.tier=vip body="{}" ip=2001:db8::1 -> allow ip=2001:db8::1 by="POST shop/echo?q=1 map[Cookie:[c=1] X:[a b]] map[ip:2001:db8::1 tier:vip] 2"

policy gate.policy
at 0s GET / -> deny by=list:bad status=403
policy <<END
challenge
END
at 0s GET / -> challenge status=429
at 0s GET / -> deny
`)
	for _, f := range report.Failures {
		t.Error(f)
	}
	if report.Lines != 16 {
		t.Errorf("want 16 lines, got %d", report.Lines)
	}
}

// TestOpenRequests: a request whose answer takes its time is over at that time, in the order of those times.
func TestOpenRequests(t *testing.T) {
	report := run(t, "x.test", `
policy <<END
END
at 0s  GET /echo response=201 response.after=5s -> allow
at 0s  GET /echo response=202 response.after=3s -> allow
at 1s  GET /echo response=203 response.after=2s -> allow
at 1s  GET /echo response=204                   -> allow
at 2s  GET /seen -> allow by=204
at 3s  GET /seen -> allow by=204,200,202,203
at 2s  GET /seen -> allow by=204,200,202,203,200
at 5s  GET /seen response.after=1h -> allow by=204,200,202,203,200,200,201
at 59m GET /seen -> allow by=204,200,202,203,200,200,201
policy <<END
END
at 0s  GET /echo response=205 response.after=2h -> allow
at 2h  GET /seen -> allow by=205
`)
	for _, f := range report.Failures {
		t.Error(f)
	}
	report = run(t, "x.test", "policy <<E\nE\nat 0s GET /echo response.after=1s x100001 -> allow\n")
	if len(report.Failures) != 1 || !strings.Contains(report.Failures[0].String(), "more than 100000 requests are open (run 100001 of") {
		t.Errorf("got %+v", report.Failures)
	}
}

// TestCounters: each run of a line has the next numbers; those of one word run like the digits of a clock, those of several
// words side by side.
func TestCounters(t *testing.T) {
	file := parse(t, "x.test", "policy <<E\nE\n"+
		"at 0s..1s every 1s GET /echo?a={1..2}{08..10} user=u{1..999999999999999999} body=\"{\\\"n\\\": {0..3}}\" x4 -> allow\n"+
		"at 2s GET /echo?{1..}{a..b}{1.2} -> allow\n")
	var got []string
	cfg := testlang.Config{Limiter: oracle.New(oracle.Config{}), Compile: compile, Trace: func(tr testlang.Trace) {
		got = append(got, strings.TrimPrefix(tr.Verdict.Rule, "GET localhost/echo?"))
	}}
	if report, err := testlang.Run(context.Background(), file, cfg); err != nil || !report.OK() {
		t.Fatalf("%+v, %v", report, err)
	}
	want := []string{
		"a=108 map[] map[user:u1] 8", "a=109 map[] map[user:u2] 8", "a=110 map[] map[user:u3] 8", "a=208 map[] map[user:u4] 8",
		"a=209 map[] map[user:u5] 8", "a=210 map[] map[user:u6] 8", "a=108 map[] map[user:u7] 8", "a=109 map[] map[user:u8] 8",
		"{1..}{a..b}{1.2} map[] map[] 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("want %q\ngot  %q", want, got)
	}
	request := file.Cases[0].Steps[0].Do.(testlang.Request)
	for n, body := range map[int64]string{0: `{"n": 0}`, 3: `{"n": 3}`, 4: `{"n": 0}`} {
		if got := request.Of(n).Body; got != body {
			t.Errorf("run %d: want the body %s, got %s", n, body, got)
		}
	}
}

func TestPolicyFailures(t *testing.T) {
	report := run(t, "dir/x.test", "policy <<E\nbroken\nE\nat 0s GET / -> allow\npolicy missing.yaml\nat 0s GET / -> allow\npolicy <<E\nE\nat 0s GET / user=a -> deny\nat 0s GET / user=a -> allow\nat 0s GET / user=a -> deny retry_after=1s\nat 0s GET /over -> allow over=x\nat 0s GET /over -> deny\n")
	want := []string{
		"dir/x.test:1: policy \n\texpected a policy that loads\n\tgot      line 1: broken",
		"dir/x.test:5: policy missing.yaml\n\texpected a policy that loads\n\tgot      open dir/missing.yaml: no such file or directory",
		"dir/x.test:9: at 0s GET / user=a -> deny\n\texpected deny\n\tgot      allow by=gate ip=192.0.2.1 remaining=0 reset_after=1h0m0s",
		"dir/x.test:10: at 0s GET / user=a -> allow\n\texpected allow\n\tgot      deny by=gate status=429 ip=192.0.2.1 remaining=0 retry_after=1h0m0s (limited)",
		"dir/x.test:11: at 0s GET / user=a -> deny retry_after=1s\n\texpected deny retry_after=1s\n\tgot      deny retry_after=1h0m0s",
		"dir/x.test:12: at 0s GET /over -> allow over=x\n\texpected allow over=x\n\tgot      allow over=x,y",
		"dir/x.test:13: at 0s GET /over -> deny\n\texpected deny\n\tgot      allow by=gate ip=192.0.2.1 stale=public over=x,y shadow=a,b",
	}
	if len(report.Failures) != len(want) {
		t.Fatalf("want %d failures, got %v", len(want), report.Failures)
	}
	for i, f := range report.Failures {
		if f.String() != want[i] {
			t.Errorf("want %s\ngot  %s", want[i], f)
		}
	}
}

func TestPoliciesThatCannotRun(t *testing.T) {
	file := parse(t, "x.test", "policy <<E\nE\nat 0s GET / -> allow\n")
	for name, tt := range map[string]struct {
		compile func(context.Context, testlang.PolicySource) (httpverdict.Decider, error)
		want    string
	}{
		"no compiler": {nil, "policies cannot be compiled here"},
		"no time": {func(context.Context, testlang.PolicySource) (httpverdict.Decider, error) { return untimed{}, nil },
			"the policy is a testlang_test.untimed, which is not httpverdict.Timed and cannot run in virtual time"},
	} {
		report, err := testlang.Run(context.Background(), file, testlang.Config{Limiter: oracle.New(oracle.Config{}), Compile: tt.compile})
		if err != nil || len(report.Failures) != 1 || report.Failures[0].Got != tt.want {
			t.Errorf("%s: want %q, got %+v, %v", name, tt.want, report, err)
		}
	}
}

type untimed struct{}

func (untimed) Decide(context.Context, *httpverdict.Request) *httpverdict.Verdict { return nil }
