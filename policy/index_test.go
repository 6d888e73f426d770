package policy

import (
	"fmt"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"reflect"
	"strings"
	"testing"
)

func matches(t *testing.T, p *Policy, path, host string) []string {
	t.Helper()
	s := newScratch(p)
	s.req = &httpverdict.Request{}
	s.epoch++
	p.index.find(s, path, host)
	var got []string
	for _, c := range s.found {
		if r := &p.rules[c.rule]; r.match.admits(0, &httpverdict.Request{Host: host}) {
			got = append(got, r.name+" "+c.route)
		}
	}
	return got
}

func TestIndex(t *testing.T) {
	p, err := Parse("index", []byte(`
version: 1
rules:
  - {name: all, limits: [token_bucket 1/s]}
  - {name: users, match: {paths: ['/users/{id}', /users/me, '/users/**']}, limits: [token_bucket 1/s]}
  - {name: prefix, match: {paths: ['/users/**']}, limits: [token_bucket 1/s]}
  - {name: root, match: {paths: [/]}, limits: [token_bucket 1/s]}
  - {name: everything, match: {paths: ['/**']}, limits: [token_bucket 1/s]}
  - {name: slash, match: {paths: ['/a%2Fb', '/café', '/v1/x:y']}, limits: [token_bucket 1/s]}
  - {name: case, match: {paths: ['/Admin/{Name}'], ignore_case: true}, limits: [token_bucket 1/s]}
  - {name: host, match: {hosts: [shop.example.com, '*.example.com']}, limits: [token_bucket 1/s]}
  - {name: host-path, match: {hosts: ['*.example.net'], paths: [/users/me]}, limits: [token_bucket 1/s]}
  - {name: resting, mode: off, match: {paths: [/x]}, limits: [token_bucket 1/s]}
`), ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, host string
		want       string
	}{
		{"/", "", "all / | root / | everything /**"},
		{"/x", "", "all /** | everything /**"},
		{"/users/me", "", "all /users/me | users /users/me | prefix /users/** | everything /**"},
		{"/users/me/", "", "all /users/me | users /users/me | prefix /users/** | everything /**"},
		{"/users/7", "", "all /users/{id} | users /users/{id} | prefix /users/** | everything /**"},
		{"/users/7;v=1", "", "all /users/{id} | users /users/{id} | prefix /users/** | everything /**"},
		{"/users;v=1/me;w", "", "all /users/me | users /users/me | prefix /users/** | everything /**"},
		{"/users", "", "all /users/** | users /users/** | prefix /users/** | everything /**"},
		{"/users/7/orders/8/9", "", "all /users/** | users /users/** | prefix /users/** | everything /**"},
		{"/usersx", "", "all /** | everything /**"},
		{"/USERS/me", "", "all /** | everything /**"},
		{"/a%2Fb", "", "all /a%2Fb | everything /** | slash /a%2Fb"},
		{"/a/b", "", "all /** | everything /**"},
		{"/caf%C3%A9", "", "all /café | everything /** | slash /café"},
		{"/v1/x%3Ay", "", "all /v1/x:y | everything /** | slash /v1/x:y"},
		{"/v1/x:y", "", "all /v1/x:y | everything /** | slash /v1/x:y"},
		{"/aDMIN/X", "", "all /Admin/{Name} | everything /** | case /Admin/{Name}"},
		{"*", "", "all /**"},
		{"/x", "shop.example.com", "all /** | everything /** | host /**"},
		{"/x", "a.b.example.com", "all /** | everything /** | host /**"},
		{"/x", "example.com", "all /** | everything /**"},
		{"/x", "badexample.com", "all /** | everything /**"},
		{"/users/me", "a.example.net", "all /users/me | users /users/me | prefix /users/** | everything /** | host-path /users/me"},
		{"/users/me", "example.net", "all /users/me | users /users/me | prefix /users/** | everything /**"},
	} {
		if got := strings.Join(matches(t, p, c.path, c.host), " | "); got != c.want {
			t.Errorf("%s at %q:\ngot  %s\nwant %s", c.path, c.host, got, c.want)
		}
	}
}

// TestIndexAgainstEveryPattern compares the trie with the plain meaning of a pattern.
func TestIndexAgainstEveryPattern(t *testing.T) {
	words := []string{"a", "b", "{p}"}
	var doc strings.Builder
	doc.WriteString("version: 1\nrules:\n")
	var patterns []string
	add := func(p string) {
		fmt.Fprintf(&doc, "  - {name: r%d, match: {paths: ['%s']}, limits: [token_bucket 1/s]}\n", len(patterns), p)
		patterns = append(patterns, p)
	}
	add("/**")
	for _, x := range words {
		add("/" + x)
		add("/" + x + "/**")
		for _, y := range words {
			add("/" + x + "/" + y)
			add("/" + x + "/" + y + "/**")
		}
	}
	p, err := Parse("patterns", []byte(doc.String()), ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/a", "/c", "/a/b", "/b/c", "/c/a", "/a/b/c", "/c/c/c/c"} {
		var want []string
		for i, pattern := range patterns {
			if plainMatch(strings.Split(pattern, "/")[1:], strings.Split(strings.Trim(path, "/"), "/")) {
				want = append(want, fmt.Sprintf("r%d %s", i, pattern))
			}
		}
		if got := matches(t, p, path, ""); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", path, got, want)
		}
	}
}

func plainMatch(pattern, path []string) bool {
	for i, word := range pattern {
		if word == "**" {
			return true
		}
		if i >= len(path) || path[i] == "" || word != "{p}" && word != path[i] {
			return false
		}
	}
	return len(pattern) == len(path)
}

// TestHeaderIndex: rules by header are found by each value, once, whatever else they ask for.
func TestHeaderIndex(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("version: 1\nrules:\n")
	for i := range 1000 {
		fmt.Fprintf(&doc, "  - {name: t%d, match: {headers: {X-Tenant: t%d}}, limits: [token_bucket 1/s]}\n", i, i)
	}
	doc.WriteString("  - {name: both, match: {headers: {X-Any: '*', X-Tenant: t7, X-Zone: a}}, limits: [token_bucket 1/s]}\n" +
		"  - {name: any, match: {headers: {X-Any: '*'}}, limits: [token_bucket 1/s]}\n" +
		"  - {name: path, match: {paths: [/p], headers: {X-Tenant: t7}}, limits: [token_bucket 1/s]}\n")
	store := &recorder{}
	e := mustEngine(t, doc.String(), store, EngineConfig{})
	for _, c := range []struct {
		path   string
		header []string
		want   string
	}{
		{"/", []string{"X-Tenant", "t7"}, "t7/0 "},
		{"/", []string{"X-Tenant", " t7\t", "X-Tenant", "t7", "X-Tenant", "t9"}, "t7/0 |t9/0 "},
		{"/", []string{"X-Tenant", "t7", "X-Zone", "a", "X-Any", "1"}, "t7/0 |both/0 |any/0 "},
		{"/p", []string{"X-Tenant", "t7"}, "t7/0 |path/0 "},
	} {
		e.Decide(t.Context(), request("GET "+c.path, c.header...))
		if got := strings.Join(store.keys(), "|"); got != c.want {
			t.Errorf("%s %q: got %s, want %s", c.path, c.header, got, c.want)
		}
	}
	asked := len(store.charges)
	if e.Decide(t.Context(), request("GET /", "X-Tenant", "T7")); len(store.charges) != asked {
		t.Error("a rule without its header applies")
	}
}
