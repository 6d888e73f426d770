package httpverdict

import (
	"net/url"
	"strings"

	headgate "github.com/headgate-io/headgate"
)

// CleanPath returns the one form in which a path is matched and forwarded, so that no spelling of a path escapes a rule.
// It takes a percent-encoded path and
//
//   - turns backslashes, raw or as %5C, into slashes, and runs of slashes into one;
//   - resolves "." and ".." segments, however encoded, also where parameters follow them ("..;a=1"); the root has no parent;
//   - decodes percent-encoded unreserved characters (letters, digits, "-", ".", "_", "~"), writes other escapes with upper
//     case digits, and encodes what may not stand in a path as it is;
//   - drops segments that are nothing but parameters ("/;a=1/x").
//
// %2F stays data of its segment. Parameters after ";" and a trailing slash stay too: they are forwarded, and ignored in
// matching. A bad escape, a control character (raw or encoded), or a path that does not begin with a slash is an error.
// The asterisk of "OPTIONS *" is returned as it is. A clean path is returned without an allocation.
func CleanPath(path string) (string, error) {
	if isClean(path) {
		return path, nil
	}
	octets, err := normalizeOctets(path)
	if err != nil {
		return "", err
	}
	return resolveSegments(octets), nil
}

// SetPath makes a URL forward the cleaned path as it is. It fails on a path that CleanPath did not return.
func SetPath(u *url.URL, clean string) error {
	plain, err := url.PathUnescape(clean)
	if err != nil {
		return pathError("has a bad escape")
	}
	u.Path, u.RawPath = plain, clean
	return nil
}

// isClean recognises most paths at a glance: no escapes, no parameters, no segment that begins with a dot.
func isClean(path string) bool {
	if path == "*" {
		return true
	}
	if path == "" || path[0] != '/' {
		return false
	}
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '/':
			if i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.') {
				return false
			}
		case c == ';' || !plainInPath(c):
			return false
		}
	}
	return true
}

func normalizeOctets(path string) ([]byte, error) {
	if path == "" || (path[0] != '/' && path[0] != '\\') {
		return nil, pathError("does not begin with a slash")
	}
	out := make([]byte, 0, len(path)+8)
	for i := 0; i < len(path); i++ {
		c, escaped := path[i], false
		if c == '%' {
			if i+2 >= len(path) || unhex(path[i+1]) < 0 || unhex(path[i+2]) < 0 {
				return nil, pathError("has a bad escape")
			}
			c, escaped = byte(unhex(path[i+1])<<4|unhex(path[i+2])), true
			i += 2
		}
		switch {
		case c < ' ' || c == 0x7f:
			return nil, pathError("has a control character")
		case c == '\\':
			out = append(out, '/')
		case unreserved(c), !escaped && plainInPath(c):
			out = append(out, c)
		default:
			const digits = "0123456789ABCDEF"
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return out, nil
}

// resolveSegments works in place: what it writes never overtakes what it reads.
func resolveSegments(path []byte) string {
	out := path[:1]
	for rest := path[1:]; ; {
		segment, after, more := cutByte(rest, '/')
		switch base, _, _ := cutByte(segment, ';'); string(base) {
		case "", ".":
		case "..":
			out = parent(out)
		default:
			out = append(out, segment...)
			if more {
				out = append(out, '/')
			}
		}
		if !more {
			return string(out)
		}
		rest = after
	}
}

// parent removes the last segment of a path that ends in a slash.
func parent(path []byte) []byte {
	if len(path) == 1 {
		return path
	}
	i := len(path) - 1
	for path[i-1] != '/' {
		i--
	}
	return path[:i]
}

func cutByte(b []byte, sep byte) (before, after []byte, found bool) {
	for i, c := range b {
		if c == sep {
			return b[:i], b[i+1:], true
		}
	}
	return b, nil, false
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// plainInPath tells whether a character may stand in a path without being encoded.
func plainInPath(c byte) bool {
	return unreserved(c) || strings.IndexByte("/!$&'()*+,;=:@", c) >= 0
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func pathError(what string) error {
	return &headgate.Error{Code: CodeMalformedRequest, Charge: -1, Message: "the path " + what}
}
