package replay

import (
	"net/netip"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// entry is one request of a log. It is used again for a later line, so nothing keeps a pointer to it.
type entry struct {
	at   int64 // µs since the Unix epoch
	line int64 // within its file

	method, host, path, query, user string
	addr                            netip.Addr // who sent it; invalid if the log has a name in its place
	client                          string     // the same as text, whatever it is
	addrIsPeer                      bool       // the log tells the connection's address alone: who is behind it is for the policy to say
	status                          int
	bytes, requestBytes             int64
	took                            int64 // µs; -1 if unknown
	fields                          []namedValue

	late bool // came so late that it is judged after its time
}

// namedValue is a header or a dimension of a request.
type namedValue struct {
	name, value string
	dimension   bool
}

func (e *entry) reset() {
	*e = entry{took: -1, fields: e.fields[:0]}
}

func (e *entry) addField(name, value string, dimension bool) {
	const most = 64
	if len(e.fields) < most {
		e.fields = append(e.fields, namedValue{name, value, dimension})
	}
}

// setClient takes an address as logs write it; anything else stays as text.
func (e *entry) setClient(text string) {
	e.client = text
	e.addr = parseAddr(text)
}

// parseAddr reads an address, also in brackets or with a port; it is invalid if there is none.
func parseAddr(text string) netip.Addr {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Unmap().WithZone("")
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	if n := len(text); n > 2 && text[0] == '[' && text[n-1] == ']' {
		if a, err := netip.ParseAddr(text[1 : n-1]); err == nil && a.Is6() {
			return a.Unmap().WithZone("")
		}
	}
	return netip.Addr{}
}

// setRequest takes a request line, "GET /path HTTP/1.1". The protocol may be absent, as in HTTP/0.9.
func (e *entry) setRequest(line string) problem {
	method, rest, ok := strings.Cut(line, " ")
	if !ok || !isMethod(method) {
		return notHTTP
	}
	if i := strings.LastIndexByte(rest, ' '); i >= 0 && strings.HasPrefix(rest[i+1:], "HTTP/") {
		rest = rest[:i]
	}
	e.method = method
	return e.setTarget(rest)
}

// setTarget takes the target of a request: a path with its query, or a whole URL.
func (e *entry) setTarget(target string) problem {
	if len(target) > 0 && target[0] != '/' && target != "*" {
		host, path, ok := cutURL(target)
		if !ok {
			return notHTTP
		}
		e.host, target = httpverdict.CleanHost(host), path
	}
	path, query, _ := strings.Cut(target, "?")
	clean, err := httpverdict.CleanPath(path)
	if err != nil {
		return notHTTP
	}
	e.path = clean
	if query != "" {
		e.query = query
	}
	return fine
}

// cutURL cuts "http://host/path?query".
func cutURL(target string) (host, path string, ok bool) {
	_, rest, ok := strings.Cut(target, "://")
	if !ok {
		return "", "", false
	}
	end := strings.IndexAny(rest, "/?")
	switch {
	case end < 0:
		return rest, "/", true
	case rest[end] == '?':
		return rest[:end], "/" + rest[end:], true
	}
	return rest[:end], rest[end:], true
}

func isMethod(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// problem says why a line cannot be replayed; "" is none.
type problem string

const (
	fine problem = ""
	// notHTTP: the line is well-formed, and the request is none that a policy would be asked about: a front answers 400.
	notHTTP problem = "not an HTTP request"

	tooLong      problem = "it is longer than 64 KiB"
	noTime       problem = "there is no time in [ ] before the request"
	badTime      problem = "its time cannot be read"
	timeRange    problem = "its time is outside the years 1850 to 2095"
	noClient     problem = "there is no client before the time"
	noRequest    problem = `there is no "request" in quotes`
	badStatus    problem = "there is no status after the request"
	badBytes     problem = "there is no size after the status"
	notJSON      problem = "it is not one JSON object"
	unknownShape problem = "it begins like no format that is known"
	jsonTime     problem = "no field gives the time"
	jsonMethod   problem = "no field gives the method"
	jsonPath     problem = "no field gives the path"
	jsonClient   problem = "no field gives the client's address"
	jsonBadTime  problem = "the field of the time cannot be read"
	jsonStatus   problem = "the field of the status is no number"
)
