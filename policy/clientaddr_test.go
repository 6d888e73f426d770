package policy

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func testClients(t testing.TB) *clients {
	p, err := Parse("clients", []byte("version: 1\nclients: {trusted_proxies: [10.0.0.0/8, '2001:db8:ff::/48']}"), ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &p.clients
}

func TestClientAddress(t *testing.T) {
	c := testClients(t)
	xff := func(lines ...string) http.Header { return http.Header{"X-Forwarded-For": lines} }
	fwd := func(lines ...string) http.Header { return http.Header{"Forwarded": lines} }
	const proxy = "10.0.0.1"
	for _, test := range []struct {
		name   string
		peer   string
		header http.Header
		want   string
	}{
		{"no header", proxy, nil, proxy},
		{"a client that is no proxy is not believed", "192.0.2.9", xff("203.0.113.1"), "192.0.2.9"},
		{"one hop", proxy, xff("203.0.113.1"), "203.0.113.1"},
		{"the first untrusted from the right", proxy, xff("6.6.6.6, 203.0.113.1, 10.0.0.2"), "203.0.113.1"},
		{"all lines count as one", proxy, xff("6.6.6.6", "203.0.113.1,10.0.0.2", "10.0.0.3"), "203.0.113.1"},
		{"all trusted: the leftmost", proxy, xff("10.0.0.7, 10.0.0.8"), "10.0.0.7"},
		{"empty elements are none", proxy, xff(", ,203.0.113.1, ,", ""), "203.0.113.1"},
		{"nothing but commas", proxy, xff(",,,"), proxy},
		{"spaces and tabs", proxy, xff("\t203.0.113.1 \t"), "203.0.113.1"},
		{"port", proxy, xff("203.0.113.1:8080"), "203.0.113.1"},
		{"IPv6", proxy, xff("2001:db8::1"), "2001:db8::1"},
		{"IPv6 in brackets with a port", proxy, xff("[2001:db8::1]:443"), "2001:db8::1"},
		{"a zone is dropped", proxy, xff("fe80::1%eth0"), "fe80::1"},
		{"IPv4 in IPv6 form", proxy, xff("::ffff:203.0.113.1"), "203.0.113.1"},
		{"a trusted hop in IPv6 form", proxy, xff("203.0.113.1, ::ffff:10.1.1.1"), "203.0.113.1"},
		{"a peer in IPv6 form", "::ffff:10.0.0.1", xff("203.0.113.1"), "203.0.113.1"},
		{"an IPv6 proxy", "2001:db8:ff::1", xff("203.0.113.1"), "203.0.113.1"},
		{"garbage falls back to the peer", proxy, xff("garbage"), proxy},
		{"garbage on the left is not read", proxy, xff("\"garbage, 203.0.113.1, 10.0.0.2"), "203.0.113.1"},
		{"garbage behind a trusted hop", proxy, xff("garbage, 10.0.0.2"), proxy},
		{"unknown", proxy, xff("unknown"), proxy},
		{"leading zeros", proxy, xff("203.0.113.01"), proxy},
		{"a prefix is no address", proxy, xff("203.0.113.0/24"), proxy},
		{"bad port", proxy, xff("203.0.113.1:x"), proxy},
		{"no port", proxy, xff("203.0.113.1:"), proxy},
		{"open bracket", proxy, xff("[2001:db8::1"), proxy},
		{"IPv4 in brackets", proxy, xff("[203.0.113.1]"), proxy},
		{"too many hops", proxy, xff(strings.Repeat("10.0.0.2,", 65) + "10.0.0.2"), proxy},
		{"as many hops as may be", proxy, xff("203.0.113.1" + strings.Repeat(",10.0.0.2", 63)), "203.0.113.1"},
		{"a long hop", proxy, xff(strings.Repeat("1", 300)), proxy},
		{"a long line on the left", proxy, xff(strings.Repeat("x", 1<<20) + ",203.0.113.1"), "203.0.113.1"},

		{"forwarded", proxy, fwd("for=203.0.113.1"), "203.0.113.1"},
		{"forwarded, all of it", proxy, fwd(`For="[2001:db8::1]:4711";proto=https;by=10.0.0.1;host=a.example`), "2001:db8::1"},
		{"forwarded, chain", proxy, fwd(`for=6.6.6.6, for=203.0.113.1;by=10.0.0.9`, "for=10.0.0.2"), "203.0.113.1"},
		{"forwarded, commas and semicolons in quotes", proxy, fwd(`for=203.0.113.1;host="a;for=6.6.6.6,for=7.7.7.7"`), "203.0.113.1"},
		{"forwarded, escapes in quotes", proxy, fwd(`for=203.0.113.1;host="a\",for=6.6.6.6;\\"`), "203.0.113.1"},
		{"forwarded, escaped quote and semicolon", proxy, fwd(`for=203.0.113.1;host="a\";for=6.6.6.6"`), "203.0.113.1"},
		{"forwarded, a quote left open by the client", proxy, fwd(`for="6.6.6.6, for=203.0.113.1`), "203.0.113.1"},
		{"forwarded, an open quote on the right", proxy, fwd(`for=6.6.6.6, for="203.0.113.1`), proxy},
		{"forwarded, unknown", proxy, fwd("for=unknown"), proxy},
		{"forwarded, obfuscated", proxy, fwd("for=_hidden"), proxy},
		{"forwarded, obfuscated port", proxy, fwd(`for="203.0.113.1:_p1"`), "203.0.113.1"},
		{"forwarded, twice in one element", proxy, fwd("for=203.0.113.1;for=6.6.6.6"), proxy},
		{"forwarded, no for", proxy, fwd("proto=https"), proxy},
		{"forwarded, empty for", proxy, fwd(`for=""`), proxy},
		{"forwarded, escaped address", proxy, fwd(`for="203.0.113\.1"`), proxy},
		{"forwarded, spaces", proxy, fwd("proto=https ; for=203.0.113.1 , for=10.0.0.2"), "203.0.113.1"},
		{"X-Forwarded-For wins", proxy, http.Header{"X-Forwarded-For": {"203.0.113.1"}, "Forwarded": {"for=203.0.113.2"}}, "203.0.113.1"},
		{"unless it is empty", proxy, http.Header{"X-Forwarded-For": {" "}, "Forwarded": {"for=203.0.113.2"}}, "203.0.113.2"},
		{"garbage does not fall back to Forwarded", proxy, http.Header{"X-Forwarded-For": {"x"}, "Forwarded": {"for=203.0.113.2"}}, proxy},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := c.address(netip.MustParseAddr(test.peer), test.header); got.String() != test.want {
				t.Errorf("got %s; want %s", got, test.want)
			}
		})
	}
	if got, _ := c.address(netip.Addr{}, xff("203.0.113.1")); got.IsValid() {
		t.Errorf("a peer without an address: got %s", got)
	}
}

func FuzzClientAddress(f *testing.F) {
	for _, s := range []string{"203.0.113.1", "1.2.3.4, 10.0.0.2", `for="[2001:db8::1]:1";by=_x`, `for="a\"b", for=unknown`, `"`, ",,", "[::ffff:1.2.3.4]:0"} {
		f.Add(s, s)
	}
	c := testClients(f)
	peer := netip.MustParseAddr("10.0.0.1")
	f.Fuzz(func(t *testing.T, xff, forwarded string) {
		for _, h := range []http.Header{{"X-Forwarded-For": {xff}}, {"Forwarded": {forwarded}}, {"X-Forwarded-For": {xff}, "Forwarded": {forwarded}}} {
			got, _ := c.address(peer, h)
			if !got.IsValid() || got.Is4In6() || got.Zone() != "" {
				t.Fatalf("%q: address %v", h, got)
			}
			// What a trusted proxy appends decides, whatever stands before it.
			for name, lines := range h {
				mine := "203.0.113.7"
				if name == "Forwarded" {
					mine = "for=203.0.113.7"
				}
				appended := http.Header{name: {lines[0] + ", " + mine}}
				if got, _ := c.address(peer, appended); got.String() != "203.0.113.7" {
					t.Fatalf("%q: address %v", appended, got)
				}
			}
		}
	})
}

func TestIPSet(t *testing.T) {
	var prefixes []netip.Prefix
	for _, s := range []string{"10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8", "192.0.2.7", "255.255.255.255", "0.0.0.0", "::", "2001:db8::/32",
		"2001:db9::/32", "::ffff:198.51.100.0/120", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"} {
		p, err := parsePrefix(s)
		if err != nil {
			t.Fatal(err)
		}
		prefixes = append(prefixes, p)
	}
	set := newIPSet(prefixes)
	if len(set) != 8 {
		t.Errorf("%d ranges: %v", len(set), set)
	}
	for addr, want := range map[string]bool{
		"10.0.0.0": true, "10.255.255.255": true, "11.255.255.255": true, "12.0.0.0": false, "9.255.255.255": false,
		"192.0.2.7": true, "192.0.2.8": false, "255.255.255.255": true, "0.0.0.0": true, "0.0.0.1": false, "::": true, "::1": false,
		"2001:db8::1": true, "2001:db9:ffff::": true, "2001:dba::": false, "198.51.100.255": true, "198.51.101.0": false,
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": true,
	} {
		if got := set.contains(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if set.contains(netip.Addr{}) || ipSet(nil).contains(netip.MustParseAddr("::1")) {
		t.Error("an address is in a set that cannot have it")
	}
	if all := newIPSet([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}); len(all) != 2 ||
		!all.contains(netip.MustParseAddr("1.2.3.4")) || !all.contains(netip.MustParseAddr("1::")) {
		t.Errorf("everything: %v", all)
	}
}
