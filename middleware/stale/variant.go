package stale

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxVary is how many headers may make answers differ.
const maxVary = 16

// variant is an answer for one set of values of what its Vary names. It is never changed, but for what the cache's mu guards.
type variant struct {
	key    key
	vary   []field
	status int
	header http.Header
	body   []byte
	born   time.Time     // when its request was sent
	before time.Duration // its Age at that time
	size   int64         // bytes in memory

	given   int  // to how many clients at the moment; guarded by mu
	dropped bool // whether it counts as being on its way to them; guarded by mu
}

// field is a header of a request, with its lines joined; absent tells it from an empty one.
type field struct {
	name, value string
	absent      bool
}

func fieldOf(h http.Header, name string) field {
	values, given := h[name]
	return field{name: name, value: strings.Join(values, ","), absent: !given}
}

// age is the whole age of an answer, as RFC 9111, section 4.2.3 has it.
func (v *variant) age(now time.Time) time.Duration { return v.before + max(now.Sub(v.born), 0) }

// matches tells whether a request of the same key gets this answer.
func (v *variant) matches(request http.Header) bool {
	for _, f := range v.vary {
		if fieldOf(request, f.name) != f {
			return false
		}
	}
	return true
}

// sameRequest tells whether another answer is for the same requests.
func (v *variant) sameRequest(other *variant) bool { return slices.Equal(v.vary, other.vary) }

// maxHeader is how many bytes the header of an answer may have.
const maxHeader = 64 << 10

// length is about how much memory a header takes.
func length(h http.Header) (size int) {
	for name, values := range h {
		size += len(name) + 64
		for _, value := range values {
			size += len(value) + 16
		}
	}
	return size
}

// overhead is about what an answer costs beside its texts.
const overhead = 1024

func (v *variant) measure() {
	size := overhead + cap(v.body) + length(v.header)
	for _, f := range v.vary {
		size += len(f.name) + len(f.value)
	}
	v.size = int64(size)
}

// newVariant returns an answer without its body, nil if it may not be given to anybody else.
func newVariant(q *Query, k key, status int, h http.Header, born time.Time) *variant {
	switch {
	case status == http.StatusOK || status == http.StatusNonAuthoritativeInfo:
	case status == http.StatusNotModified && q.conditional():
	default:
		return nil
	}
	if !forOthers(k, h) {
		return nil
	}
	vary, ok := varyOf(q.Header, h)
	if !ok {
		return nil
	}
	if length(h) > maxHeader {
		return nil
	}
	v := &variant{key: k, vary: vary, status: status, header: cleanHeader(h), born: born}
	if seconds, err := strconv.ParseUint(first(h["Age"]), 10, 31); err == nil {
		v.before = time.Duration(seconds) * time.Second
	}
	if _, given := v.header["Date"]; !given {
		v.header["Date"] = []string{born.UTC().Format(http.TimeFormat)}
	}
	return v
}

// forOthers tells whether what an answer says of itself lets it be kept for its key.
func forOthers(k key, h http.Header) bool {
	for _, name := range [...]string{"Set-Cookie", "Set-Cookie2", "Content-Range", "Trailer", "Upgrade"} {
		if len(h[name]) > 0 {
			return false
		}
	}
	switch kind, _, _ := strings.Cut(strings.ToLower(first(h["Content-Type"])), ";"); strings.TrimSpace(kind) {
	case "text/event-stream", "multipart/x-mixed-replace": // they have no end
		return false
	}
	var noStore, private, public bool
	for directive := range items(h["Cache-Control"]) {
		name, _, _ := strings.Cut(directive, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store":
			noStore = true
		case "private":
			private = true
		case "public":
			public = true
		}
	}
	return !noStore && (!k.public || !private && (public || !k.authorized))
}

// varyOf returns the headers on which an answer depends. An encoded body and permission for one origin depend on the
// request whether the service says so or not. ok is false if it depends on what cannot be compared: what a front tells the
// service of the client differs from what the client has sent.
func varyOf(request, h http.Header) (vary []field, ok bool) {
	names := make([]string, 0, 4)
	if len(h["Content-Encoding"]) > 0 {
		names = append(names, "Accept-Encoding")
	}
	if origin := h["Access-Control-Allow-Origin"]; len(origin) > 0 && origin[0] != "*" {
		names = append(names, "Origin")
	}
	for name := range items(h["Vary"]) {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if name == "*" || name == "Forwarded" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "Headgate-") {
			return nil, false
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxVary {
		return nil, false
	}
	for _, name := range names {
		vary = append(vary, fieldOf(request, name))
	}
	return vary, true
}

// cleanHeader returns the part of a header that is kept.
func cleanHeader(h http.Header) http.Header {
	clean := make(http.Header, len(h))
	named := make(map[string]bool)
	for option := range items(h["Connection"]) {
		named[textproto.CanonicalMIMEHeaderKey(option)] = true
	}
	for name, values := range h {
		if !named[name] && !dropped(name) {
			clean[name] = slices.Clone(values)
		}
	}
	return clean
}

// dropped names the headers that belong to one connection, to one verdict, or are made anew.
func dropped(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authentication-Info", "Te", "Transfer-Encoding",
		"Content-Length", "Age", "Retry-After", "Ratelimit", "Ratelimit-Policy":
		return true
	}
	return strings.HasPrefix(name, "Headgate-") || strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, http.TrailerPrefix)
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// items yields the elements of a list header.
func items(lines []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for item := range strings.SplitSeq(line, ",") {
				if item = textproto.TrimString(item); item != "" && !yield(item) {
					return
				}
			}
		}
	}
}
