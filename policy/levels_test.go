package policy

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// switches are levels and an overload that a test sets, and what they are told.
type switches struct {
	lifted, restricted, danger bool
	shed                       map[uint8]bool
	devices                    map[uint64]bool
	told                       []bool
}

func (s *switches) DeviceLifted() bool { return s.lifted }
func (s *switches) Restricted() bool   { return s.restricted }
func (s *switches) Device(device uint64, deniedAlone bool) {
	if s.devices == nil {
		s.devices = map[uint64]bool{}
	}
	s.devices[device] = true
	s.told = append(s.told, deniedAlone)
}
func (s *switches) Danger() bool             { return s.danger }
func (s *switches) Shed(priority uint8) bool { return s.shed[priority] }

const levelsDoc = `version: 1
clients: {trusted_proxies: [10.0.0.0/8]}
dimensions:
  device: {cookie: did}
  user: {header: X-User-Id, trusted: true}
lists:
  staff: {dimension: user, values: [s-1]}
  office: {cidrs: [203.0.113.7]}
  bad: {cidrs: [203.0.113.9]}
deny: [bad]
allow: [office]
rules:
  - {name: site, limits: [fixed_window 100/1d]}
  - {name: ip, key: [ip], limits: [fixed_window 20/1d]}
  - {name: device, key: [device, route], match: {paths: [/x, /y]}, limits: [fixed_window 2/1d]}
  - {name: shut, key: [device], match: {paths: [/z]}, limits: [fixed_window 1/1d], lockout: {after: 1, for: 1h}}
degradation: {l3: {allow: [staff]}}
`

func ask(e httpverdict.Decider, t *testing.T, line string, header ...string) string {
	t.Helper()
	client, line, _ := strings.Cut(line, " ")
	v := e.Decide(t.Context(), from(client, line, header...))
	v.Finish(t.Context(), httpverdict.Result{Status: 200})
	return strings.TrimSpace(v.Kind.String() + " " + v.Code + " " + v.Rule)
}

func TestDeviceLayerIsLifted(t *testing.T) {
	sw := &switches{}
	e := mustEngine(t, levelsDoc, newMemory(t), EngineConfig{Levels: sw}).At(noon)
	steps := []struct {
		lifted     bool
		line, want string
	}{
		{false, "198.51.100.1 GET /x", "allow  device"},
		{false, "198.51.100.1 GET /x", "allow  device"},
		{false, "198.51.100.1 GET /x", "limited limited device"},
		{false, "198.51.100.2 GET /z", "allow  shut"},
		{false, "198.51.100.2 GET /z", "locked_out locked_out shut"},
		{true, "198.51.100.1 GET /x", "allow  ip"},
		{true, "198.51.100.1 GET /x", "allow  ip"},
		{true, "198.51.100.2 GET /z", "locked_out locked_out shut"}, // what is shut stays shut
		{false, "198.51.100.1 GET /y", "allow  device"},             // it has charged nothing while it was lifted
		{false, "198.51.100.1 GET /x", "limited limited device"},
	}
	for i, step := range steps {
		sw.lifted = step.lifted
		if got := ask(e, t, step.line, "Cookie", "did=d1"); got != step.want {
			t.Errorf("step %d, %s: got %q, want %q", i, step.line, got, step.want)
		}
	}
}

// TestLiftedLayerOfOthers: a device that is not shut passes a lifted rule with a lockout, again and again, and is not shut by it.
func TestLiftedLayerShutsNobody(t *testing.T) {
	sw := &switches{lifted: true}
	e := mustEngine(t, levelsDoc, newMemory(t), EngineConfig{Levels: sw}).At(noon)
	for range 4 {
		if got := ask(e, t, "198.51.100.1 GET /z", "Cookie", "did=d2"); got != "allow  ip" {
			t.Fatalf("got %q", got)
		}
	}
	sw.lifted = false
	if got := ask(e, t, "198.51.100.1 GET /z", "Cookie", "did=d2"); got != "allow  shut" {
		t.Errorf("got %q", got)
	}
}

func TestLevelsAreToldOfDevices(t *testing.T) {
	sw := &switches{}
	e := mustEngine(t, levelsDoc, newMemory(t), EngineConfig{Levels: sw, Now: func() time.Time { return noon }})
	send := func(line string, header ...string) { ask(e, t, line, header...) }
	send("198.51.100.1 GET /x")                         // no device
	send("198.51.100.1 GET /other", "Cookie", "did=d1") // no rule of the layer
	send("203.0.113.9 GET /x", "Cookie", "did=d1")      // on a deny list
	send("203.0.113.7 GET /x", "Cookie", "did=d1")      // on an allow list
	send("198.51.100.2 GET /x", "Cookie", "did=d1")     // passes
	send("198.51.100.2 GET /y", "Cookie", "did=d1")     // the same device
	send("198.51.100.2 GET /x", "Cookie", "did=d1")     // passes
	send("198.51.100.2 GET /x", "Cookie", "did=d1")     // denied alone
	send("198.51.100.3 GET /z", "Cookie", "did=d2")     // passes
	send("198.51.100.3 GET /z", "Cookie", "did=d2")     // denied, and shut
	send("198.51.100.3 GET /z", "Cookie", "did=d2")     // locked out
	for range 20 {
		send("198.51.100.4 GET /other")
	}
	send("198.51.100.4 GET /x", "Cookie", "did=d3") // the address is over its limit
	want := []bool{false, false, false, true, false, false, false, false}
	if !reflect.DeepEqual(sw.told, want) || len(sw.devices) != 3 {
		t.Errorf("told %v of %d devices, want %v of 3", sw.told, len(sw.devices), want)
	}
}

func TestRestricted(t *testing.T) {
	for _, c := range []struct{ line, user, want string }{
		{"198.51.100.1 GET /a", "", "unavailable restricted"},
		{"198.51.100.1 GET /a", "u-1", "unavailable restricted"},
		{"198.51.100.1 GET /a", "s-1", "allow  ip"},
		{"203.0.113.7 GET /a", "", "unavailable restricted"},
		{"203.0.113.9 GET /a", "s-1", "forbidden list_denied list:bad"},
	} {
		e := mustEngine(t, levelsDoc, newMemory(t), EngineConfig{Levels: &switches{restricted: true}}).At(noon)
		client, line, _ := strings.Cut(c.line, " ")
		r := from(client, line, "X-User-Id", c.user)
		v := e.Decide(t.Context(), r)
		if got := strings.TrimSpace(v.Kind.String() + " " + v.Code + " " + v.Rule); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.line, c.user, got, c.want)
		}
		if v.Kind == httpverdict.Unavailable && v.RetryAfter.After != time.Minute {
			t.Errorf("got %+v", v.RetryAfter)
		}
	}
}

func TestShedByPriority(t *testing.T) {
	const doc = preamble + `
rules:
  - {name: site, limits: [token_bucket 1000/s]}
  - {name: pay, match: {methods: [POST], paths: [/pay]}, priority: critical, limits: [token_bucket 1000/s]}
  - {name: feed, match: {paths: ['/feed/**']}, priority: sheddable, limits: [token_bucket 1000/s]}
  - {name: news, match: {paths: [/feed/news]}, priority: normal, limits: [token_bucket 1000/s]}
  - {name: trial, mode: shadow, match: {paths: [/cart]}, priority: critical, limits: [token_bucket 1000/s]}
`
	want := map[string]uint8{"POST /pay": 0, "GET /pay": 1, "GET /feed/x": 2, "GET /feed/news": 1, "GET /cart": 1, "GET /": 1}
	for line, priority := range want {
		for shed := range uint8(3) {
			sw, seen := &switches{danger: true, shed: map[uint8]bool{shed: true}}, &diary{}
			store := &recorder{}
			v := mustEngine(t, doc, store, EngineConfig{Overload: sw, Observer: seen}).Decide(t.Context(), request(line))
			if v.Priority != priority || v.Allowed() == (shed == priority) {
				t.Errorf("%s, shedding %d: got priority %d, %+v", line, shed, v.Priority, v)
			}
			if !v.Allowed() && (v.Kind != httpverdict.Overloaded || v.Code != "shed" || v.RetryAfter.After != 5*time.Second || len(store.charges) > 0) {
				t.Errorf("%s: got %+v", line, v)
			}
			if told := strings.Contains(strings.Join(seen.lines, " "), "shed"); told == v.Allowed() {
				t.Errorf("%s: the observer was told %q", line, seen.lines)
			}
		}
	}
}

func TestOverloadPasses(t *testing.T) {
	const doc = preamble + `
lists: {bad: {cidrs: [203.0.113.9]}}
deny: [bad]
rules: [{name: none, limits: [token_bucket 0/s]}]
overload: {action: pass}
`
	sw := &switches{danger: true, shed: map[uint8]bool{0: true, 1: true, 2: true}}
	e := mustEngine(t, doc, newMemory(t), EngineConfig{Overload: sw})
	for _, c := range []struct {
		client string
		danger bool
		want   string
	}{
		{"198.51.100.1", true, "allow overload_passed"},
		{"203.0.113.9", true, "forbidden list_denied list:bad"},
		{"198.51.100.1", false, "limited cost_exceeds_limit none"},
	} {
		sw.danger = c.danger
		if got := ask(e, t, c.client+" GET /"); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

// TestFallbackForTheService: an allowed request carries what its rule answers in place of a service that fails.
func TestFallbackForTheService(t *testing.T) {
	const doc = preamble + `
rules:
  - {name: trial, mode: shadow, limits: [token_bucket 9/s], on_deny: {action: fallback, body: never}}
  - {name: list, match: {paths: [/list]}, limits: [token_bucket 9/s], on_deny: {action: fallback, body: '[]', content_type: application/json}}
`
	e := mustEngine(t, doc, newMemory(t), EngineConfig{})
	if v := e.Decide(t.Context(), request("GET /list")); !v.Allowed() || v.Fallback == nil || string(v.Fallback.Body) != "[]" {
		t.Errorf("got %+v", v)
	}
	if v := e.Decide(t.Context(), request("GET /")); v.Fallback != nil {
		t.Errorf("got %+v", v)
	}
}

// away is a store that is gone.
type away struct{ err error }

func (a away) Take(_ context.Context, _ []headgate.Charge, d *headgate.Decision) error {
	d.Reset(0)
	return a.err
}

// TestFallbackAllocatesNothingMore: while the store is away every request goes this way.
func TestFallbackAllocatesNothingMore(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector pools forget at random")
	}
	const doc = preamble + "rules: [{name: a, limits: [token_bucket 1000000/s]}, {name: b, key: [ip], limits: [token_bucket 1000000/s]}]"
	near := mustEngine(t, doc, newMemory(t), EngineConfig{})
	far := mustEngine(t, doc, away{&headgate.Error{Code: headgate.CodeUnavailable}}, EngineConfig{Fallback: newMemory(t)})
	r := request("GET /")
	count := func(e *Engine) float64 {
		return testing.AllocsPerRun(200, func() { e.Decide(t.Context(), r) })
	}
	if with, without := count(near), count(far); without > with {
		t.Errorf("%v allocations without the store, %v with it", without, with)
	}
}
