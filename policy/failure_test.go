package policy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// diary is an Observer that writes down what it is told, without the times.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) Decided(rule, verdict string, took time.Duration) {
	if took < 0 {
		d.add("negative time")
	}
	d.add("decided %q %s", rule, verdict)
}
func (d *diary) ShadowDenied(rule string)               { d.add("shadow %q", rule) }
func (d *diary) Shed(priority string)                   { d.add("shed %s", priority) }
func (d *diary) StoreFailed(code string, fallback bool) { d.add("failed %s %v", code, fallback) }

func TestStoreErrors(t *testing.T) {
	deny := &recorder{deny: func(*headgate.Charge) bool { return true }}
	for _, c := range []struct {
		err      error
		fallback headgate.Limiter
		kind     httpverdict.Kind
		code     string
		diary    string
	}{
		{&headgate.Error{Code: headgate.CodeUnavailable}, nil, httpverdict.Unavailable, "store_unavailable", `failed unavailable false|decided "" unavailable`},
		{&headgate.Error{Code: headgate.CodeTimeout}, nil, httpverdict.Unavailable, "store_timeout", `failed timeout false|decided "" unavailable`},
		{&headgate.Error{Code: headgate.CodeIndeterminate}, nil, httpverdict.Unavailable, "store_indeterminate", `failed indeterminate false|decided "" unavailable`},
		{&headgate.Error{Code: headgate.CodeOverloaded}, nil, httpverdict.Overloaded, "overloaded", `failed overloaded false|decided "" overloaded`},
		{&headgate.Error{Code: headgate.CodeInvalidCost}, nil, httpverdict.BadRequest, "invalid_cost", `failed invalid_cost false|decided "" bad_request`},
		{&headgate.Error{Code: headgate.CodeInvalidCost}, &recorder{}, httpverdict.BadRequest, "invalid_cost", `failed invalid_cost false|decided "" bad_request`},
		{&headgate.Error{Code: headgate.CodeTooManyCharges}, &recorder{}, httpverdict.Unavailable, "too_many_charges", `failed too_many_charges false|decided "" unavailable`},
		{errors.New("no code"), nil, httpverdict.Unavailable, "store_internal", `failed internal false|decided "" unavailable`},
		{fmt.Errorf("call: %w", context.DeadlineExceeded), nil, httpverdict.Unavailable, "store_timeout", `failed timeout false|decided "" unavailable`},
		{&headgate.Error{Code: headgate.CodeUnavailable}, &recorder{}, httpverdict.Allow, "", `failed unavailable true|decided "r" allow`},
		{&headgate.Error{Code: headgate.CodeOverloaded}, deny, httpverdict.Limited, "limited", `failed overloaded true|decided "r" limited`},
		{&headgate.Error{Code: headgate.CodeUnavailable}, &recorder{err: errors.New("too")}, httpverdict.Unavailable, "store_unavailable", `failed unavailable false|decided "" unavailable`},
	} {
		seen := &diary{}
		e := mustEngine(t, preamble+"rules: [{name: r, key: [ip], limits: [token_bucket 1/s]}]", &recorder{err: c.err}, EngineConfig{Fallback: c.fallback, Observer: seen})
		v := e.Decide(t.Context(), request("GET /"))
		if v.Kind != c.kind || v.Code != c.code || strings.Join(seen.lines, "|") != c.diary {
			t.Errorf("%v: got %+v, %q", c.err, v, seen.lines)
		}
		if v.Kind == httpverdict.Unavailable && (v.RetryAfter.After != time.Second || httpverdict.StatusOf(v.Kind) != 503) {
			t.Errorf("%v: got %+v", c.err, v)
		}
	}
}

// impatient fails as a store does whose caller has run out of time, and as a fallback demands more of it.
type impatient struct{ open }

func (i impatient) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.open.Take(ctx, charges, d)
}

func TestFallbackOutlivesTheDeadline(t *testing.T) {
	seen := &diary{}
	e := mustEngine(t, preamble+"rules: [{name: r, limits: [token_bucket 1/s]}]", impatient{}, EngineConfig{Fallback: impatient{}, Observer: seen})
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if v := e.Decide(late, request("GET /")); !v.Allowed() || v.Rule != "r" {
		t.Errorf("late: got %+v", v)
	}
	// Who hangs up while the store is asked gets nothing from the fallback.
	if v := e.Decide(gone, request("GET /")); v.Kind != httpverdict.Unavailable {
		t.Errorf("gone: got %+v", v)
	}
	// A client that goes away is no failure of the store; one that waits in vain may have met one.
	want := []string{"failed timeout true", `decided "r" allow`, `decided "" unavailable`}
	if !reflect.DeepEqual(seen.lines, want) {
		t.Errorf("got %q", seen.lines)
	}
}

func TestTooManyChargesAreNoPass(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(preamble + "rules:\n")
	for i := range 129 {
		fmt.Fprintf(&doc, "  - {name: r%d, match: {paths: [/x]}, limits: [token_bucket 1/s]}\n", i)
	}
	e := mustEngine(t, doc.String(), newMemory(t), EngineConfig{Fallback: newMemory(t)})
	if v := e.Decide(t.Context(), request("GET /x")); v.Kind != httpverdict.Unavailable || v.Code != "too_many_charges" {
		t.Errorf("got %+v", v)
	}
}

func TestObserver(t *testing.T) {
	seen := &diary{}
	store := &recorder{deny: func(c *headgate.Charge) bool { return c.Mode == headgate.Shadow || c.Slot == "r/0" }}
	e := mustEngine(t, preamble+`
lists: {bad: {cidrs: [203.0.113.9]}}
deny: [bad]
rules:
  - {name: one, mode: shadow, limits: [token_bucket 1/s, token_bucket 2/s]}
  - {name: two, mode: shadow, limits: [token_bucket 1/s]}
  - {name: r, match: {methods: [POST]}, limits: [token_bucket 1/s]}
`, store, EngineConfig{Observer: seen})
	e.Decide(t.Context(), from("203.0.113.9", "GET /"))
	e.Decide(t.Context(), request("GET /"))
	e.Decide(t.Context(), request("POST /"))
	want := []string{`decided "list:bad" forbidden`, `decided "" allow`, `shadow "one"`, `shadow "two"`, `decided "r" limited`, `shadow "one"`, `shadow "two"`}
	if !reflect.DeepEqual(seen.lines, want) {
		t.Errorf("got %q", seen.lines)
	}
}

func TestNewEngineRefuses(t *testing.T) {
	plain := mustParse(t, "version: 1")
	slots := mustParse(t, "version: 1\nrules: [{name: r, limits: [concurrency 1 ttl=1s]}]")
	for _, c := range []struct {
		p    *Policy
		l    headgate.Limiter
		cfg  EngineConfig
		want string
	}{
		{nil, &recorder{}, EngineConfig{}, "policy: an engine needs a policy and a limiter"},
		{plain, nil, EngineConfig{}, "policy: an engine needs a policy and a limiter"},
		{plain, &recorder{}, EngineConfig{MaxHold: time.Millisecond}, "policy: MaxHold 1ms is below 1s"},
		{slots, &recorder{}, EngineConfig{}, `policy policy: rule "r" has concurrency limits, and the store cannot release slots`},
		{slots, newMemory(t), EngineConfig{Fallback: &recorder{}}, `policy policy: rule "r" has concurrency limits, and the store cannot release slots`},
	} {
		if e, err := NewEngine(c.p, c.l, c.cfg); e != nil || err == nil || err.Error() != c.want {
			t.Errorf("got %v, %v; want %s", e, err, c.want)
		}
	}
}

func TestConcurrentDecisions(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - {name: site, limits: [fixed_window 500/day]}
  - {name: user, key: [user, route], match: {paths: ['/x/{y}']}, limits: [token_bucket 1/s burst=100000]}
`, newMemory(t), EngineConfig{Observer: &diary{}})
	d := e.At(noon)
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for worker := range 8 {
		wg.Go(func() {
			for range 100 {
				r := from("203.0.113.7", "GET /x/1", "X-User-Id", fmt.Sprint("u", worker))
				v := d.Decide(context.Background(), r)
				mu.Lock()
				if v.Allowed() {
					allowed++
				}
				mu.Unlock()
				if v.ClientIP != netip.MustParseAddr("203.0.113.7") || len(v.Limits) != 2 {
					t.Errorf("got %+v", v)
				}
			}
		})
	}
	wg.Wait()
	if allowed != 500 {
		t.Errorf("%d of 800 passed; the limit is 500", allowed)
	}
}

// TestShadowRulesCloseNothing: whatever a rule on trial says of a store that fails, the request is judged by the others.
func TestShadowRulesCloseNothing(t *testing.T) {
	for _, onError := range []string{"local", "open", "closed", "stale"} {
		for _, c := range []struct {
			fallback headgate.Limiter
			rules    string
			want     string // of three requests
		}{
			{nil, "", "allow allow allow"},
			{&recorder{err: errors.New("too")}, "", "allow allow allow"},
			{newMemory(t), "", "allow allow allow"},
			{newMemory(t), "  - {name: r, limits: [fixed_window 2/100d]}\n", "allow allow limited"},
			{newMemory(t), "  - {name: r, on_error: open, limits: [fixed_window 2/100d]}\n", "allow allow allow"},
			{newMemory(t), "  - {name: r, on_error: closed, limits: [fixed_window 2/100d]}\n", "unavailable unavailable unavailable"},
			{newMemory(t), "  - {name: r, store: local, limits: [fixed_window 2/100d]}\n", "allow allow limited"},
		} {
			e := mustEngine(t, preamble+"rules:\n  - {name: trial, mode: shadow, on_error: "+onError+", limits: [fixed_window 1/100d]}\n"+c.rules,
				&refunding{recorder: recorder{err: &headgate.Error{Code: headgate.CodeUnavailable}}}, EngineConfig{Local: newMemory(t), Fallback: fallbackOf(c.fallback)})
			var got []string
			for range 3 {
				got = append(got, e.Decide(t.Context(), request("GET /")).Kind.String())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s, %sgot %q, want %s", onError, c.rules, got, c.want)
			}
		}
	}
}

// fallbackOf lets every limiter be one that gives back.
func fallbackOf(l headgate.Limiter) headgate.Limiter {
	if r, ok := l.(*recorder); ok {
		return &refunding{recorder: *r}
	}
	return l
}
