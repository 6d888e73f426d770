package paywire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Headers with a signature: "t=SECONDS,v1=HEX", with a v1 for each secret in use. Each is the HMAC-SHA256 of the timestamp and of what
// it goes with, so that neither can be changed nor sent again when it is old. What is signed begins with the timestamp and a dot in a
// webhook, and with the timestamp and a line feed in a request: so one never stands for the other, though the secrets are the same.
const (
	WebhookHeader = "Webhook-Signature"
	RequestHeader = "Request-Signature"
)

// DefaultTolerance is how far a timestamp may be from now, where nobody says otherwise.
const DefaultTolerance = 5 * time.Minute

// MaxSecrets is how many secrets can be in use together.
const MaxSecrets = 16

const maxSignature = 2048

// Request is what the signature of a request is about.
type Request struct {
	Method string
	// Target is the path with the query, escaped as it is sent.
	Target string
	Body   []byte
}

// SignWebhook returns the value of [WebhookHeader] for a body sent at a time.
func SignWebhook(secrets [][]byte, at time.Time, body []byte) string {
	return sign(secrets, at, webhookParts(body))
}

// SignRequest returns the value of [RequestHeader] for a request sent at a time.
func SignRequest(secrets [][]byte, at time.Time, r *Request) string {
	return sign(secrets, at, r.parts())
}

// Verifier checks signatures.
type Verifier struct {
	// Secrets are those in use: any of them is good.
	Secrets [][]byte
	// Tolerance is how far the timestamp may be from Now.
	Tolerance time.Duration
	Now       time.Time
}

// Verify returns an error with CodeInvalidSignature unless the header has a signature of a webhook's body that is good and not old.
func (v *Verifier) Verify(header map[string][]string, body []byte) error {
	return v.verify(WebhookHeader, header, webhookParts(body), "webhook refused: ")
}

// VerifyRequest is Verify for a request.
func (v *Verifier) VerifyRequest(header map[string][]string, r *Request) error {
	return v.verify(RequestHeader, header, r.parts(), "request refused: ")
}

func webhookParts(body []byte) [][]byte { return [][]byte{[]byte("."), body} }

func (r *Request) parts() [][]byte {
	return [][]byte{[]byte("\n" + r.Method + "\n" + r.Target + "\n"), r.Body}
}

func sign(secrets [][]byte, at time.Time, parts [][]byte) string {
	var b strings.Builder
	stamp := strconv.FormatInt(at.Unix(), 10)
	b.WriteString("t=" + stamp)
	for _, secret := range secrets {
		b.WriteString(",v1=" + hex.EncodeToString(mac(secret, stamp, parts)))
	}
	return b.String()
}

func (v *Verifier) verify(name string, header map[string][]string, parts [][]byte, what string) error {
	stamp, given, ok := parseSignature(valueOf(name, header))
	if !ok {
		return refused(what + "the header " + name + " is missing or malformed")
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return refused(what + "its timestamp is no time")
	}
	if age := v.Now.Sub(time.Unix(seconds, 0)); age > v.Tolerance || age < -v.Tolerance {
		return refused(what + "its timestamp is too far from now; is it a replay, or a clock that is wrong?")
	}
	for _, secret := range v.Secrets {
		want := mac(secret, stamp, parts)
		for _, g := range given {
			if hmac.Equal(g, want) {
				return nil
			}
		}
	}
	return refused(what + "no signature fits any secret in use")
}

func valueOf(name string, header map[string][]string) string {
	if values := http.Header(header).Values(name); len(values) == 1 {
		return values[0]
	}
	for n, values := range header { // a header that was not made canonical
		if strings.EqualFold(n, name) && len(values) == 1 {
			return values[0]
		}
	}
	return ""
}

// parseSignature reads "t=…,v1=…,v1=…". Parts with other names are left for later versions.
func parseSignature(value string) (stamp string, macs [][]byte, ok bool) {
	if value == "" || len(value) > maxSignature {
		return "", nil, false
	}
	for part := range strings.SplitSeq(value, ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			if stamp != "" || text == "" {
				return "", nil, false
			}
			stamp = text
		case "v1":
			m, err := hex.DecodeString(text)
			if err != nil || len(m) != sha256.Size || len(macs) == MaxSecrets {
				return "", nil, false
			}
			macs = append(macs, m)
		}
	}
	return stamp, macs, stamp != "" && len(macs) > 0
}

func mac(secret []byte, stamp string, parts [][]byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(stamp))
	for _, part := range parts {
		m.Write(part)
	}
	return m.Sum(nil)
}

func refused(why string) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidSignature, Message: why}
}
