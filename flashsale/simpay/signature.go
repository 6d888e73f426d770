package simpay

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

// SignatureHeader is the header of a webhook that has its signature: "t=SECONDS,v1=HEX", with a v1 for each secret in use. Each is the
// HMAC-SHA256 of the timestamp, a dot and the body, so that neither can be changed nor sent again when it is old.
const SignatureHeader = "Webhook-Signature"

const (
	maxSignature  = 2048
	maxSignatures = 16
)

// Sign returns the value of [SignatureHeader] for a body sent at a time.
func Sign(secrets [][]byte, at time.Time, body []byte) string {
	var b strings.Builder
	stamp := strconv.FormatInt(at.Unix(), 10)
	b.WriteString("t=" + stamp)
	for _, secret := range secrets {
		b.WriteString(",v1=" + hex.EncodeToString(mac(secret, stamp, body)))
	}
	return b.String()
}

// Verifier checks signatures.
type Verifier struct {
	// Secrets are those in use: any of them is good.
	Secrets [][]byte
	// Tolerance is how far the timestamp may be from Now.
	Tolerance time.Duration
	Now       time.Time
}

// Verify returns an error with CodeInvalidSignature unless the header has a signature of the body that is good and not old.
func (v *Verifier) Verify(header map[string][]string, body []byte) error {
	stamp, given, ok := parseSignature(signatureOf(header))
	if !ok {
		return badSignature("the header " + SignatureHeader + " is missing or malformed")
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return badSignature("its timestamp is no time")
	}
	if age := v.Now.Sub(time.Unix(seconds, 0)); age > v.Tolerance || age < -v.Tolerance {
		return badSignature("its timestamp is too far from now; is it a replay, or a clock that is wrong?")
	}
	for _, secret := range v.Secrets {
		want := mac(secret, stamp, body)
		for _, g := range given {
			if hmac.Equal(g, want) {
				return nil
			}
		}
	}
	return badSignature("no signature fits any secret in use")
}

func signatureOf(header map[string][]string) string {
	if values := http.Header(header).Values(SignatureHeader); len(values) == 1 {
		return values[0]
	}
	for name, values := range header { // a header that was not made canonical
		if strings.EqualFold(name, SignatureHeader) && len(values) == 1 {
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
			if err != nil || len(m) != sha256.Size || len(macs) == maxSignatures {
				return "", nil, false
			}
			macs = append(macs, m)
		}
	}
	return stamp, macs, stamp != "" && len(macs) > 0
}

func mac(secret []byte, stamp string, body []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(stamp))
	m.Write([]byte{'.'})
	m.Write(body)
	return m.Sum(nil)
}

func badSignature(why string) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidSignature, Message: "webhook refused: " + why}
}
