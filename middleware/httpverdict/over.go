package httpverdict

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MinOverKey is how many bytes the key of a mark must have.
const MinOverKey = 16

const (
	overVersion  = "v1"
	maxOverText  = 4096 // bytes of a mark that is looked at
	maxOverRules = 3072 // bytes of rule names that are written
)

var (
	// ErrNoMark says that a request is not marked: it is over no limit.
	ErrNoMark = errors.New("the request has no mark")
	// ErrBadMark says that a mark is not believed; what wraps it says why.
	ErrBadMark = errors.New("the mark is not valid")
)

// OverMark is what the header [HeaderOver] says: which rules an allowed request is over, and of which request that was
// said. [SignOver] writes it and [VerifyOver] reads it.
type OverMark struct {
	// Rules are the names of the rules.
	Rules []string
	// ID is the verdict's.
	ID string
	// At is when the request was judged, to the second.
	At time.Time
	// Method, Host and Path are those that were judged, in the form of a [Request]. The query and the body are not part of
	// the mark.
	Method, Host, Path string
}

// SignOver returns the text of a mark, such as "v1;at=1767225600;id=2k7vq0d5n8x1c;over=pay,site;sig=…". The signature is
// HMAC-SHA256 over all of it and over method, host and path, so that a mark is worth nothing on another request. Names are
// percent-encoded where they need to be, and left out after the first 3072 bytes. A key shorter than [MinOverKey] signs
// nothing: the text is "".
func SignOver(key []byte, m OverMark) string {
	if len(key) < MinOverKey {
		return ""
	}
	var b strings.Builder
	b.WriteString(overVersion + ";at=")
	b.WriteString(strconv.FormatInt(m.At.Unix(), 10))
	b.WriteString(";id=" + url.PathEscape(m.ID) + ";over=")
	names := 0
	for i, rule := range m.Rules {
		name := url.PathEscape(rule)
		if names += len(name) + 1; names > maxOverRules {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name)
	}
	sig := overSignature(key, b.String(), &m)
	b.WriteString(";sig=" + base64.RawURLEncoding.EncodeToString(sig))
	return b.String()
}

// OverRules returns the names of the rules that the verdict's own mark holds, nil if it has none. It is for those who show
// verdicts: what came with a request is for [VerifyOver] to read.
func (v *Verdict) OverRules() []string {
	var m OverMark
	text, _, _ := strings.Cut(v.Over, ";sig=")
	if err := m.parse(text); v.Over == "" || err != nil {
		return nil
	}
	return m.Rules
}

// VerifyOver reads the mark of a request and believes it if it was signed with this key for its method, host and path, at
// most maxAge before now and not as far ahead of it. The error is [ErrNoMark] if there is none, else it wraps [ErrBadMark].
//
// The path must be the one that the front judged: the application takes off first what a gateway has put in front of it.
func VerifyOver(key []byte, r *Request, now time.Time, maxAge time.Duration) (OverMark, error) {
	values := r.Header[HeaderOver]
	switch len(values) {
	case 0:
		return OverMark{}, ErrNoMark
	case 1:
	default:
		return OverMark{}, badMark("there are several")
	}
	m := OverMark{Method: r.Method, Host: r.Host, Path: r.Path}
	text, sig, found := strings.Cut(values[0], ";sig=")
	got, err := base64.RawURLEncoding.Strict().DecodeString(sig)
	switch {
	case len(key) < MinOverKey:
		return OverMark{}, badMark("the key has less than 16 bytes")
	case len(values[0]) > maxOverText || !found || err != nil:
		return OverMark{}, badMark("it is malformed")
	case !hmac.Equal(got, overSignature(key, text, &m)):
		return OverMark{}, badMark("the signature is not of this key and request")
	}
	if err := m.parse(text); err != nil {
		return OverMark{}, err
	}
	if age := now.Sub(m.At); age.Abs() > maxAge {
		return OverMark{}, badMark("it is not of this time")
	}
	return m, nil
}

// VerifyOverRequest is [VerifyOver] for a request as net/http has it.
func VerifyOverRequest(key []byte, r *http.Request, now time.Time, maxAge time.Duration) (OverMark, error) {
	if len(r.Header[HeaderOver]) == 0 {
		return OverMark{}, ErrNoMark
	}
	req, err := FromHTTP(r)
	if err != nil {
		return OverMark{}, badMark(err.Error())
	}
	return VerifyOver(key, req, now, maxAge)
}

func badMark(why string) error { return fmt.Errorf("%w: %s", ErrBadMark, why) }

// overSignature signs the fields with their lengths, so that no two lists of fields sign alike.
func overSignature(key []byte, text string, m *OverMark) []byte {
	mac := hmac.New(sha256.New, key)
	for _, field := range [...]string{HeaderOver, text, m.Method, m.Host, m.Path} {
		fmt.Fprintf(mac, "%d:%s,", len(field), field)
	}
	return mac.Sum(nil)
}

// parse reads what has been signed.
func (m *OverMark) parse(text string) error {
	fields := strings.Split(text, ";")
	if len(fields) != 4 || fields[0] != overVersion {
		return badMark("it is of another version")
	}
	var values [3]string
	for i, name := range [...]string{"at=", "id=", "over="} {
		value, ok := strings.CutPrefix(fields[i+1], name)
		if !ok {
			return badMark("it is malformed")
		}
		values[i] = value
	}
	at, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return badMark("it is malformed")
	}
	m.At = time.Unix(at, 0)
	if m.ID, err = url.PathUnescape(values[1]); err != nil {
		return badMark("it is malformed")
	}
	for name := range strings.SplitSeq(values[2], ",") {
		rule, err := url.PathUnescape(name)
		if err != nil {
			return badMark("it is malformed")
		}
		m.Rules = append(m.Rules, rule)
	}
	return nil
}
