package expr

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCompile: whatever stands in a policy, it compiles or says where it does not; what compiles runs within its bounds and
// yields its kind.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		`request.headers["x-app"] != "internal" && dim.tier == "vip"`,
		`response.status == 401 || "x" in response.headers`,
		`int(request.headers["x-amount-cents"]) / 100`,
		`request.headers["x-roles"].split(",", 16).exists(r, r.trim() == "vip")`,
		`request.time.getHours("Asia/Shanghai") >= 20 ? 1 : {"a": 2}[dim.tier]`,
		`request.path.matches("^/api/v[0-9]+/") && !has(dim.a)`,
		`[1, 2].map(x, x * 2).filter(y, y > 2).size() == 1`,
		"dim['user-id'] +\n request.query[request.query.a] // note",
		`timestamp("2026-01-01T00:00:00Z") + duration("5m") < request.time`,
		`"\u00e9".size() == 1u || 'it`,
		`dim.user-id`, `request.methd`, `((((`, `a.b(c)[d]{e: f}`,
	} {
		for kind := range uint8(3) {
			f.Add(text, kind, "web/2.1, vip")
		}
	}
	f.Fuzz(func(t *testing.T, text string, kindByte uint8, value string) {
		kind := Kind(kindByte % 3)
		e, err := Compile(text, kind)
		if err != nil {
			checkError(t, text, err)
			return
		}
		if e.MaxSteps() > MaxCost {
			t.Errorf("%q: %d steps", text, e.MaxSteps())
		}
		in := sample()
		in.headers.Set("X-App", value)
		in.dims["tier"], in.query["q"], in.path = value, value, value
		if steps := stepsOf(t, e, in); steps > e.MaxSteps() && len(value) <= MaxValue {
			t.Errorf("%q: took %d steps, estimated at %d", text, steps, e.MaxSteps())
		}
		got, err := run(e, kind, in)
		if err != nil && (len(err.Error()) > 900 || strings.Contains(err.Error(), "internal error") || strings.Contains(err.Error(), "is of type")) {
			t.Errorf("%q: %v", text, err)
		}
		if s, ok := got.(string); ok && len(s) > MaxValue {
			t.Errorf("%q: a text of %d bytes", text, len(s))
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("%q: %T", text, err)
	}
	lines := strings.Split(text, "\n")
	if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > utf8.RuneCountInString(lines[e.Line-1])+1 {
		t.Errorf("%q: the place %d:%d is not in the text", text, e.Line, e.Column)
	}
	if e.Message == "" || len(e.Message) > 900 || strings.ContainsAny(e.Message, "\n\x00\x1b") {
		t.Errorf("%q: message %q", text, e.Message)
	}
}
