package lint

import (
	"slices"
	"testing"

	"github.com/headgate-io/headgate/policy"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b          string
		covers, meets bool
	}{
		{"/login", "/login", true, true},
		{"/login", "/login/", true, true},
		{"/login", "/Login", false, false},
		{"/login", "/log%69n", true, true},
		{"/caf%C3%A9", "/café", true, true},
		{"/a%2Fb", "/a/b", false, false},
		{"/", "/", true, true},
		{"/", "/a", false, false},
		{"/**", "/", true, true},
		{"/**", "/a/b", true, true},
		{"/a/**", "/a", true, true},
		{"/a/**", "/a/{x}/c", true, true},
		{"/a/**", "/a/**", true, true},
		{"/a/**", "/**", false, true},
		{"/a/b", "/a/**", false, true},
		{"/a", "/a/b", false, false},
		{"/{x}", "/a", true, true},
		{"/a", "/{x}", false, true},
		{"/{x}/b", "/a/{y}", false, true},
		{"/{x}/b", "/a/c", false, false},
		{"/{x}", "/a/b", false, false},
		{"/{x}/**", "/a/b/c", true, true},
		{"/{x}/**", "/", false, false},
		{"/a/b/**", "/a/c/**", false, false},
	} {
		a, b := newPattern(tc.a, false), newPattern(tc.b, false)
		if got := a.covers(b); got != tc.covers {
			t.Errorf("%s covers %s: %v", tc.a, tc.b, got)
		}
		if got := a.meets(b); got != tc.meets || b.meets(a) != got {
			t.Errorf("%s meets %s: %v", tc.a, tc.b, got)
		}
	}
}

func TestPatternsThatIgnoreCase(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b          string
		foldA, foldB  bool
		covers, meets bool
	}{
		{"/Login", "/login", true, false, true, true},
		{"/Login", "/LOGIN", true, true, true, true},
		{"/login", "/login", false, true, false, true},
		{"/login", "/LOGIN", false, true, false, true},
		{"/42", "/42", false, true, true, true},
		{"/{x}", "/login", false, true, true, true},
		{"/login", "/logout", true, true, false, false},
	} {
		a, b := newPattern(tc.a, tc.foldA), newPattern(tc.b, tc.foldB)
		if got := a.covers(b); got != tc.covers {
			t.Errorf("%s (%v) covers %s (%v): %v", tc.a, tc.foldA, tc.b, tc.foldB, got)
		}
		if got := a.meets(b); got != tc.meets {
			t.Errorf("%s (%v) meets %s (%v): %v", tc.a, tc.foldA, tc.b, tc.foldB, got)
		}
	}
}

func TestRequestsCover(t *testing.T) {
	t.Parallel()
	type match struct{ methods, hosts, paths, headers []string }
	for name, tc := range map[string]struct {
		a, b match
		want bool
	}{
		"everything covers":           {match{}, match{methods: words("GET"), hosts: words("a.example"), paths: words("/x"), headers: words("X: 1")}, true},
		"everything is not covered":   {match{paths: words("/**")}, match{}, false},
		"more methods":                {match{methods: words("GET", "POST")}, match{methods: words("POST")}, true},
		"fewer methods":               {match{methods: words("GET")}, match{methods: words("GET", "POST")}, false},
		"all methods are not any":     {match{methods: words("GET", "POST")}, match{}, false},
		"wildcard host":               {match{hosts: words("*.example.com")}, match{hosts: words("a.example.com", "*.b.example.com")}, true},
		"wildcard is below only":      {match{hosts: words("*.example.com")}, match{hosts: words("example.com")}, false},
		"host with the same end":      {match{hosts: words("*.example.com")}, match{hosts: words("badexample.com")}, false},
		"one of the paths":            {match{paths: words("/a")}, match{paths: words("/a", "/b")}, false},
		"both of the paths":           {match{paths: words("/b/**", "/a")}, match{paths: words("/a", "/b/c")}, true},
		"a header more":               {match{headers: words("X-App: *")}, match{headers: words("x-app: 1", "Y: 2")}, true},
		"a header less":               {match{headers: words("X-App: 1")}, match{headers: words("X-App: *")}, false},
		"a header with another value": {match{headers: words("X-App: 1")}, match{headers: words("X-App: 2")}, false},
	} {
		a := newRequests(tc.a.methods, tc.a.hosts, tc.a.paths, tc.a.headers, false)
		b := newRequests(tc.b.methods, tc.b.hosts, tc.b.paths, tc.b.headers, false)
		if got := a.cover(&b); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCoverIndex compares the index with a look at every pair.
func TestCoverIndex(t *testing.T) {
	t.Parallel()
	texts := []string{"", "/", "/a", "/A", "/a/b", "/a/{x}", "/{x}", "/{x}/b", "/a/**", "/**", "/{x}/**", "/42"}
	hosts := []string{"", "a.example.com", "*.example.com", "*.a.example.com", "b.example.com", "example.com"}
	var rules []rule
	for _, text := range texts {
		for _, host := range hosts {
			for _, fold := range []bool{false, true} {
				rules = append(rules, coverRule(nil, words(host), words(text), fold))
			}
		}
	}
	rules = append(rules, coverRule(words("GET"), nil, words("/a", "/b"), false))
	s := subject{}
	for i := range rules {
		rules[i].index = i
		s.covering.add(&rules[i])
	}
	for i := range rules {
		var want []*rule
		for j := range rules {
			if i != j && rules[j].requests.cover(&rules[i].requests) {
				want = append(want, &rules[j])
			}
		}
		if got := s.coverers(&rules[i]); !slices.Equal(got, want) {
			t.Errorf("%+v: %d rules cover it, want %d", rules[i].requests, len(got), len(want))
		}
	}
}

func coverRule(methods, hosts, paths []string, fold bool) rule {
	return rule{Rule: &policy.Rule{Hosts: hosts}, requests: newRequests(methods, hosts, paths, nil, fold)}
}

// words returns its arguments but for the empty ones.
func words(list ...string) []string {
	return slices.DeleteFunc(list, func(w string) bool { return w == "" })
}
