package policy

import (
	"net/http"
	"net/netip"
	"strings"
)

// Bounds of what is read of the address headers, from the right. What lies further left was written by nobody we trust.
const (
	maxHops     = 64
	maxHopBytes = 256
)

// clients is the clients part of a policy.
type clients struct {
	trusted    ipSet
	ipv6Prefix int
}

// address returns who a request comes from: the first hop from the right that is not a trusted proxy, the leftmost if all
// are, the peer itself if it is not trusted or if the header is garbage. X-Forwarded-For wins over Forwarded. It also tells
// whether the peer is trusted.
func (c *clients) address(peer netip.Addr, h http.Header) (client netip.Addr, trusted bool) {
	peer = peer.Unmap().WithZone("")
	if !c.trusted.contains(peer) {
		return peer, false
	}
	lines, parse := h["X-Forwarded-For"], parseHop
	if !anyText(lines) {
		lines, parse = h["Forwarded"], parseForwarded
	}
	if client, ok := c.walk(lines, parse); ok {
		return client, true
	}
	return peer, true
}

func (c *clients) walk(lines []string, parse func(string) (netip.Addr, bool)) (client netip.Addr, ok bool) {
	hops := hopReader{lines: lines}
	for n := 0; ; n++ {
		hop, more := hops.next()
		if !more {
			return client, client.IsValid()
		}
		if n == maxHops || len(hop) > maxHopBytes {
			return netip.Addr{}, false
		}
		if hop == "" {
			continue // an empty element of a list is no element
		}
		if client, ok = parse(hop); !ok {
			return netip.Addr{}, false
		}
		if !c.trusted.contains(client) {
			return client, true
		}
	}
}

// hopReader returns the elements of a comma-separated header from the last to the first, over all its lines.
type hopReader struct {
	lines []string
	rest  string
	open  bool // rest is a line, or its left part
}

func (r *hopReader) next() (hop string, ok bool) {
	if !r.open {
		if len(r.lines) == 0 {
			return "", false
		}
		last := len(r.lines) - 1
		r.rest, r.lines, r.open = r.lines[last], r.lines[:last], true
	}
	comma := lastComma(r.rest)
	if comma < 0 {
		hop, r.open = r.rest, false
	} else {
		hop, r.rest = r.rest[comma+1:], r.rest[:comma]
	}
	return trim(hop), true
}

// lastComma returns the last comma outside a quoted string. It reads from the right, so that a quote which a client left
// open on the left cannot swallow what the proxies wrote; and it stops after maxHopBytes, which makes the hop too long.
func lastComma(s string) int {
	quoted := false
	for i := len(s) - 1; i >= 0 && len(s)-i <= maxHopBytes+2; i-- {
		switch s[i] {
		case '"':
			quoted = !quoted || escaped(s[:i])
		case ',':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// escaped tells whether the character after s is escaped within a quoted string.
func escaped(s string) bool {
	slashes := len(s) - len(strings.TrimRight(s, `\`))
	return slashes%2 == 1
}

// parseHop reads an address as proxies write it: with or without a port, IPv6 with or without brackets.
func parseHop(s string) (netip.Addr, bool) {
	if s == "" {
		return netip.Addr{}, false
	}
	if s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 0 || !validPort(s[end+1:]) {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(s[1:end])
		return a.Unmap().WithZone(""), err == nil && a.Is6()
	}
	if colon := strings.IndexByte(s, ':'); colon >= 0 && strings.LastIndexByte(s, ':') == colon {
		if !validPort(s[colon:]) {
			return netip.Addr{}, false
		}
		s = s[:colon]
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}

// validPort accepts nothing, or a colon and the port, or what RFC 7239 allows in its place ("_" and letters).
func validPort(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) == 1 || len(s) > 64 {
		return false
	}
	obfuscated := s[1] == '_'
	for i := 1; i < len(s); i++ {
		c := s[i]
		digit := '0' <= c && c <= '9'
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
		if !digit && (!obfuscated || !letter) {
			return false
		}
	}
	return obfuscated || len(s) <= 6
}

// parseForwarded reads the "for" of one element of a Forwarded header (RFC 7239). "unknown" and obfuscated names are no
// addresses, and an element with two of them says nothing.
func parseForwarded(element string) (netip.Addr, bool) {
	var node string
	for rest := element; rest != ""; {
		var pair string
		pair, rest = cutPair(rest)
		name, value, ok := strings.Cut(trim(pair), "=")
		if !ok || !strings.EqualFold(name, "for") {
			continue
		}
		if node != "" {
			return netip.Addr{}, false
		}
		if node = unquote(value); node == "" {
			return netip.Addr{}, false
		}
	}
	return parseHop(node)
}

// cutPair cuts at the first semicolon outside quotes.
func cutPair(s string) (pair, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == ';' && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// unquote removes the quotes of a value. An address needs no escapes, so a value with one is empty, as is a broken one.
func unquote(s string) string {
	if !strings.ContainsAny(s, `"\`) {
		return s
	}
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' || strings.ContainsAny(s[1:len(s)-1], `"\`) {
		return ""
	}
	return s[1 : len(s)-1]
}

func anyText(lines []string) bool {
	for _, l := range lines {
		for i := range len(l) {
			if c := l[i]; c != ' ' && c != '\t' && c != ',' {
				return true
			}
		}
	}
	return false
}
