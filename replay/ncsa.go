package replay

import (
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// ncsa reads the common and the combined format of Apache and nginx, also with a host before the client:
//
//	[host[:port] ]client ident user [time] "request" status bytes[ "referer" "user agent"[ …]]
//
// What stands behind is ignored. Quotes, backslashes and control characters are escaped by both servers within quotes, so
// the first quote begins the request, whatever a client has sent as its user's name.
type ncsa struct {
	clock clockReader
	// hosted and combined say what the last line had beside the common format.
	hosted, combined bool
}

func (p *ncsa) parse(line string, e *entry) problem {
	p.hosted, p.combined = false, false
	quote := unescapedQuote(line, 0)
	if quote < 0 {
		return noRequest
	}
	rest, what := p.head(line[:quote], e)
	if what != fine {
		return what
	}
	end := unescapedQuote(line, quote+1)
	if end < 0 {
		return noRequest
	}
	request := unescape(line[quote+1 : end])
	if what := p.tail(line[end+1:], e); what != fine {
		return what
	}
	p.setPrefix(rest, e)
	if e.client == "" {
		return noClient
	}
	return e.setRequest(request)
}

// format names the format of the last line.
func (p *ncsa) format() string {
	name := "common"
	if p.combined {
		name = "combined"
	}
	if p.hosted {
		name += " with host"
	}
	return name
}

// head reads the time and returns what stands before it.
func (p *ncsa) head(head string, e *entry) (rest string, what problem) {
	head = strings.TrimRight(head, " \t")
	open := strings.LastIndexByte(head, '[')
	if open < 0 || head[len(head)-1] != ']' {
		return "", noTime
	}
	e.at, what = p.clock.common(head[open+1 : len(head)-1])
	return strings.TrimRight(head[:open], " "), what
}

// setPrefix takes "client ident user", with or without a host before. A user may have blanks in its name.
func (p *ncsa) setPrefix(rest string, e *entry) {
	first, after, _ := strings.Cut(rest, " ")
	e.setClient(first)
	if second, further, ok := strings.Cut(after, " "); ok && len(second) > 1 {
		if a := parseAddr(second); a.IsValid() { // no ident is an address, so the first word was the host
			e.host, p.hosted = httpverdict.CleanHost(first), true
			e.client, e.addr, after = second, a, further
		}
	}
	_, user, _ := strings.Cut(after, " ")
	if user != "-" && user != "" {
		e.user = unescape(user)
	}
	if e.client == "-" {
		e.client = ""
	}
}

// tail reads what follows the request.
func (p *ncsa) tail(rest string, e *entry) problem {
	text, rest := nextWord(rest)
	status, ok := smallNumber(text)
	if !ok || status > 999 {
		return badStatus
	}
	e.status = int(status)
	text, rest = nextWord(rest)
	if e.bytes, ok = smallNumber(text); !ok {
		return badBytes
	}
	for _, name := range [...]string{"Referer", "User-Agent"} {
		var value string
		if value, rest, ok = nextQuoted(rest); !ok {
			break
		}
		p.combined = true
		if value != "-" && value != "" {
			e.addField(name, value, false)
		}
	}
	return fine
}

func nextWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t")
	if end := strings.IndexAny(s, " \t"); end >= 0 {
		return s[:end], s[end:]
	}
	return s, ""
}

// smallNumber reads a number that is not negative; "-" stands for 0.
func smallNumber(s string) (n int64, ok bool) {
	if s == "-" {
		return 0, true
	}
	if s == "" || len(s) > 15 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

func nextQuoted(s string) (value, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t")
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	end := unescapedQuote(s, 1)
	if end < 0 {
		return "", s, false
	}
	return unescape(s[1:end]), s[end+1:], true
}

// unescapedQuote returns where the next quote is that no backslash escapes, -1 if there is none.
func unescapedQuote(s string, from int) int {
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// unescape takes back what Apache (\" \\ \n \t …) and nginx (\x22) have escaped.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 == len(s) {
			out = append(out, c)
			continue
		}
		i++
		switch c = s[i]; c {
		case 'x', 'X':
			if high, low := hexDigit(s, i+1), hexDigit(s, i+2); high >= 0 && low >= 0 {
				out = append(out, byte(high<<4|low))
				i += 2
				continue
			}
			out = append(out, '\\', c)
		case 'n', 't', 'r', 'b', 'v', 'f':
			out = append(out, "\n\t\r\b\v\f"[strings.IndexByte("ntrbvf", c)])
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func hexDigit(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch c := s[i]; {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
