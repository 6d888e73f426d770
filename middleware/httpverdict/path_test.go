package httpverdict

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	headgate "github.com/headgate-io/headgate"
)

func TestCleanPath(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/", "/"},
		{"*", "*"},
		{"/login", "/login"},
		{"/login/", "/login/"},
		{"//login", "/login"},
		{"/a///b", "/a/b"},
		{"/a/./b", "/a/b"},
		{"/a/../b", "/b"},
		{"/../../b", "/b"},
		{"/a/b/..", "/a/"},
		{"/a/b/.", "/a/b/"},
		{"/a/..", "/"},
		{"/..", "/"},
		{"/.well-known/x", "/.well-known/x"},
		{"/a/...", "/a/..."},
		{"/%6cogin", "/login"},
		{"/%6C%6f%67in", "/login"},
		{"/%2e%2E/b", "/b"},
		{"/a/%2e/b", "/a/b"},
		{"/a%7eb", "/a~b"},
		{`/a\b`, "/a/b"},
		{`\a`, "/a"},
		{`/a\..\b`, "/b"},
		{"/a/..%5cb", "/b"},
		{"/%5Clogin", "/login"},
		{"/a%2fb", "/a%2Fb"},
		{"/a%2F..%2Fb", "/a%2F..%2Fb"},
		{"/a%252fb", "/a%252fb"},
		{"/a%c3%a9", "/a%C3%A9"},
		{"/aé", "/a%C3%A9"},
		{"/a b", "/a%20b"},
		{"/a?b", "/a%3Fb"},
		{"/a\"<>", "/a%22%3C%3E"},
		{"/a;v=1/b", "/a;v=1/b"},
		{"/a/..;v=1/b", "/b"},
		{"/a/.;/b", "/a/b"},
		{"/;v=1/login", "/login"},
		{"/login/;x", "/login/"},
		{"/a%3bb", "/a%3Bb"},
		{"/a+b@c:d,e=f!$&'()*", "/a+b@c:d,e=f!$&'()*"},
		{"/%ff", "/%FF"},
	} {
		got, err := CleanPath(c.in)
		if err != nil || got != c.want {
			t.Errorf("CleanPath(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func TestCleanPathRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":         "does not begin with a slash",
		"login":    "does not begin with a slash",
		"**":       "does not begin with a slash",
		"/%":       "bad escape",
		"/%4":      "bad escape",
		"/%zz":     "bad escape",
		"/%+1":     "bad escape",
		"/a\x00":   "control character",
		"/a\n":     "control character",
		"/%00":     "control character",
		"/%0d%0aX": "control character",
		"/%7F":     "control character",
		"/\x7f":    "control character",
	} {
		got, err := CleanPath(in)
		if headgate.CodeOf(err) != CodeMalformedRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("CleanPath(%q) = %q, %v; want an error with %q", in, got, err, want)
		}
	}
}

func TestCleanPathDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { _, _ = CleanPath("/api/v1/users:batch/4711") }); n != 0 {
		t.Errorf("a clean path allocates %v times", n)
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, s := range []string{"/a/../b", "/%2e%2e;x/a", `/a\%5C..`, "/%c0%af", "/;/..;/", "/a%2f%2e", "*", "/%25%32%65"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, err := CleanPath(in)
		if err != nil {
			return
		}
		if again, err := CleanPath(out); err != nil || again != out {
			t.Fatalf("CleanPath(%q) = %q, and that cleans to %q, %v", in, out, again, err)
		}
		if out == "*" {
			return
		}
		if out[0] != '/' || strings.Contains(out, "//") || strings.ContainsAny(out, "\\ \x00\n\r?#") {
			t.Fatalf("CleanPath(%q) = %q is not clean", in, out)
		}
		for _, seg := range strings.Split(out, "/") {
			if base, _, _ := strings.Cut(seg, ";"); base == "." || base == ".." {
				t.Fatalf("CleanPath(%q) = %q has a dot segment", in, out)
			}
		}
		var u url.URL
		if err := SetPath(&u, out); err != nil || u.EscapedPath() != out {
			t.Fatalf("SetPath(%q) forwards %q, %v", out, u.EscapedPath(), err)
		}
	})
}

func TestSetPathForwardsWhatWasMatched(t *testing.T) {
	for _, clean := range []string{"/a%2Fb", "/a;v=1/", "/a%C3%A9", "/a!b'c", "/"} {
		u := url.URL{Path: "/old", RawPath: "/o%6cd"}
		if err := SetPath(&u, clean); err != nil || u.EscapedPath() != clean {
			t.Errorf("SetPath(%q) forwards %q, %v", clean, u.EscapedPath(), err)
		}
	}
	if err := SetPath(&url.URL{}, "/%zz"); headgate.CodeOf(err) != CodeMalformedRequest {
		t.Errorf("SetPath of a bad escape: %v", err)
	}
}

func TestFromHTTP(t *testing.T) {
	for _, c := range []struct{ target, path, query string }{
		{"/login?x=1", "/login", "x=1"},
		{"/lo%67in", "/login", ""},
		{`/a\..\login`, "/login", ""},
		{"/a%5C..%5Clogin", "/login", ""},
		{"/a%2Fb", "/a%2Fb", ""},
		{"http://h.example/x", "/x", ""},
		{"http://h.example", "/", ""},
	} {
		u, err := url.ParseRequestURI(c.target)
		if err != nil {
			t.Fatal(err)
		}
		r, err := FromHTTP(&http.Request{Method: "POST", URL: u, Host: "Shop.Example.com:8080", RemoteAddr: "[::ffff:192.0.2.1]:99",
			Header: http.Header{"A": {"b"}}, ContentLength: 7})
		if err != nil {
			t.Errorf("FromHTTP(%q): %v", c.target, err)
			continue
		}
		if r.Path != c.path || r.RawQuery != c.query || r.Host != "shop.example.com" || r.Peer.String() != "192.0.2.1" ||
			r.Method != "POST" || r.ContentLength != 7 || r.Header.Get("A") != "b" {
			t.Errorf("FromHTTP(%q) = %+v", c.target, r)
		}
	}
}

func TestFromHTTPRefuses(t *testing.T) {
	r, err := FromHTTP(&http.Request{URL: &url.URL{Path: "/a\nb"}, RemoteAddr: "192.0.2.1:1"})
	if headgate.CodeOf(err) != CodeMalformedRequest {
		t.Fatalf("got %+v, %v", r, err)
	}
	v := Malformed(err)
	if v.Kind != BadRequest || v.Code != "malformed_request" || v.ID == "" || v.Binding != -1 ||
		v.Detail != "The request is malformed: the path has a control character." {
		t.Errorf("got %+v", v)
	}
}

func TestCleanHost(t *testing.T) {
	for in, want := range map[string]string{
		"Example.COM": "example.com", "example.com:80": "example.com", "example.com.": "example.com", "example.com.:80": "example.com",
		"[::1]:80": "::1", "[2001:DB8::1]": "2001:db8::1", "": "", "[::1": "[::1",
	} {
		if got := CleanHost(in); got != want {
			t.Errorf("CleanHost(%q) = %q; want %q", in, got, want)
		}
	}
}

func TestPeerAddr(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[fe80::1%eth0]:80": "fe80::1", "2001:db8::1": "2001:db8::1", "@": "invalid IP", "": "invalid IP", "host:80": "invalid IP",
	} {
		if got := PeerAddr(in).String(); got != want {
			t.Errorf("PeerAddr(%q) = %s; want %s", in, got, want)
		}
	}
}
