package httpverdict

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	headgate "github.com/headgate-io/headgate"
)

// TestShared: what RFC 9111 lets a shared cache keep and give to others.
func TestShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		control string
		// alone: the request has no Authorization; named: it has one.
		alone, named bool
	}{
		{"", false, false},
		{"public", true, true},
		{"PUBLIC, max-age=1", true, true},
		{"max-age=60", true, false},
		{"max-age=\"60\"", true, false},
		{"max-age=0", false, false},
		{"max-age=0, stale-while-revalidate=5", true, false},
		{"max-age=60, must-revalidate", true, true},
		{"s-maxage=60", true, true},
		{"must-revalidate", false, false},
		{"private, max-age=60", false, false},
		{"Private", false, false},
		{"public, private", false, false},
		{"no-store, max-age=60", false, false},
		{"no-cache, max-age=60", false, false},
		{`private="Set-Cookie", max-age=60`, true, false},
		{`no-cache="a, no-store", max-age=60`, true, false},
		{`ext="\", no-store", max-age=60`, true, false},
		{`ext="no-store, max-age=60`, false, false},
		{" , ,public,", true, true},
		{"publicity, private-ish=1", false, false},
	} {
		for _, personal := range []bool{false, true} {
			r := &http.Request{Method: http.MethodGet, Header: http.Header{}}
			want := c.alone
			if personal {
				r.Header.Set("Authorization", "Bearer x")
				want = c.named
			}
			h := http.Header{}
			if c.control != "" {
				h.Set("Cache-Control", c.control)
			}
			if got := Shared(r, 200, h); got != want {
				t.Errorf("%q, with Authorization: %t: shared %t, want %t", c.control, personal, got, want)
			}
			r.Method = http.MethodPost
			if Shared(r, 200, h) {
				t.Errorf("%q of a POST is shared", c.control)
			}
		}
	}
	get := &http.Request{Method: http.MethodHead, Header: http.Header{}}
	for _, c := range []struct {
		status int
		header http.Header
		want   bool
	}{
		{304, http.Header{"Cache-Control": {"public"}}, true},
		{304, http.Header{}, false},
		{304, http.Header{"Cache-Control": {"private"}}, false},
		{103, http.Header{"Cache-Control": {"public"}}, false},
		{404, http.Header{"Cache-Control": {"public, max-age=5"}}, true},
		{200, http.Header{"Expires": {"Thu, 01 Dec 2033 16:00:00 GMT"}}, true},
		{200, http.Header{"Expires": {"Thu, 01 Dec 2033 16:00:00 GMT"}, "Cache-Control": {"private"}}, false},
		{200, http.Header{"Cache-Control": {"max-age=1", "no-store"}}, false},
		{200, http.Header{"Cache-Control": {"no-store"}, "Cdn-Cache-Control": {"max-age=60"}}, true},
		{200, http.Header{"Cache-Control": {"private"}, "Surrogate-Control": {"no-store"}}, false},
	} {
		if got := Shared(get, c.status, c.header); got != c.want {
			t.Errorf("%d %v: shared %t", c.status, c.header, got)
		}
	}
}

// TestUnset takes away what SetHeaders sets, and nothing of the service's.
func TestUnset(t *testing.T) {
	t.Parallel()
	limit, err := headgate.ParseLimit("fixed_window 5/1m")
	if err != nil {
		t.Fatal(err)
	}
	report := []LimitReport{{Name: "r", Limit: limit, Outcome: headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 3}}}
	for _, v := range []*Verdict{
		{ID: "id", Binding: -1},
		{ID: "id", Limits: report},
		{ID: "id", Limits: report, Response: ResponseStyle{XRateLimit: true}},
		{ID: "id", Limits: report, Response: ResponseStyle{XRateLimit: true, IETF: true}},
	} {
		before := http.Header{"Etag": {"x"}, "Retry-After": {"1"}}
		if len(v.Limits) == 0 { // its own limits are not the gate's
			before.Set(HeaderRateLimit, `"own";r=1`)
			before.Set("X-RateLimit-Limit", "7")
		}
		h := maps.Clone(before)
		SetHeaders(h, v)
		if maps.EqualFunc(h, before, slices.Equal) {
			t.Fatal("nothing was set")
		}
		Unset(h, v)
		if !maps.EqualFunc(h, before, slices.Equal) {
			t.Errorf("%+v: left %v, want %v", v.Response, h, before)
		}
	}
}

func FuzzShared(f *testing.F) {
	for _, s := range []string{"public", `private="a,b", max-age=1`, `x="\`, ",,,", "=,=", `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, control string) {
		r := &http.Request{Method: http.MethodGet, Header: http.Header{}}
		// What says at its beginning that nobody keeps it is kept by nobody, whatever follows.
		if Shared(r, 200, http.Header{"Cache-Control": {"no-store," + control}}) {
			t.Errorf("%q", control)
		}
	})
}
