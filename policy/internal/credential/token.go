package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// verify checks a token's form and signature, and returns what it claims.
func (j *JWT) verify(token string) (c claims, ok bool) {
	h, ok := readHeader(token)
	if !ok {
		return nil, false
	}
	candidates := j.candidates(h)
	if len(candidates) == 0 {
		return nil, false
	}
	signed, err := jose.ParseSignedCompact(token, j.accepted)
	if err != nil {
		return nil, false
	}
	for _, k := range candidates {
		if payload, err := signed.Verify(k.material); err == nil {
			return readClaims(payload)
		}
	}
	return nil, false
}

// candidates are the keys that a token may be signed with. The algorithm is the key's, never only the token's: this is what
// keeps a public key from being used as a secret.
func (j *JWT) candidates(h header) (fit []key) {
	for _, k := range j.keys {
		if h.kid != "" && k.kid != "" && h.kid != k.kid || !slices.Contains(k.algorithms, h.algorithm) {
			continue
		}
		if fit = append(fit, k); len(fit) == maxTrials {
			break
		}
	}
	return fit
}

// header is what counts of a token's header.
type header struct{ algorithm, kid string }

// readHeader checks the form of a token and reads its header, which is not verified yet.
func readHeader(token string) (h header, ok bool) {
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 || strings.ContainsAny(token, "\r\n") {
		return header{}, false
	}
	// A token that decodes to the same bytes as another would be that token once more.
	encoding := base64.RawURLEncoding.Strict()
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = encoding.DecodeString(part); err != nil || len(decoded[i]) == 0 {
			return header{}, false
		}
	}
	fields, ok := readObject(decoded[0])
	if !ok {
		return header{}, false
	}
	// crit and b64 change what the signature is over; enc is of encrypted tokens.
	for _, name := range []string{"crit", "b64", "enc"} {
		if _, there := fields[name]; there {
			return header{}, false
		}
	}
	if content, there := fields["cty"]; there && nested(content) {
		return header{}, false
	}
	h.algorithm, ok = fields["alg"].(string)
	if kid, there := fields["kid"]; there && ok {
		h.kid, ok = kid.(string)
	}
	return h, ok
}

// nested tells whether a content type says that the token holds another token.
func nested(content any) bool {
	text, ok := content.(string)
	kind := strings.ToLower(text)
	return !ok || kind == "jwt" || strings.HasSuffix(kind, "/jwt") || strings.HasSuffix(kind, "+jwt")
}

// claims are what a token says, numbers being json.Number.
type claims map[string]any

func readClaims(payload []byte) (c claims, ok bool) { return readObject(payload) }

// readObject reads a JSON object that is as good as Field wants it.
func readObject(data []byte) (object map[string]any, ok bool) {
	if !validJSON(data) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err := decoder.Decode(&object)
	return object, err == nil && object != nil
}

// value returns the claim of that name or, if there is none, the one that the dots in it lead to. Names with dots are
// there: some issuers use addresses of the web.
func (c claims) value(name string) (value string, ok bool) {
	found, there := c[name]
	for inner := map[string]any(c); !there; {
		first, rest, more := strings.Cut(name, ".")
		if found, ok = inner[first]; !ok {
			return "", false
		}
		if !more {
			break
		}
		if inner, ok = found.(map[string]any); !ok {
			return "", false
		}
		name = rest
	}
	switch found := found.(type) {
	case string:
		return found, found != ""
	case json.Number:
		return found.String(), wholeNumber(found.String())
	}
	return "", false
}

// instant returns the time that a claim has in seconds, in µs; otherwise if there is none. It is false for what is no number.
func (c claims) instant(name string, otherwise int64) (micros int64, ok bool) {
	found, there := c[name]
	if !there {
		return otherwise, true
	}
	number, ok := found.(json.Number)
	if !ok {
		return 0, false
	}
	// Beyond this, a time is as good as never; it is the year 33658.
	const furthest = 1_000_000_000_000
	if seconds, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
		return min(max(seconds, -furthest), furthest) * 1_000_000, true
	}
	seconds, err := strconv.ParseFloat(number.String(), 64)
	if err != nil {
		return 0, false
	}
	return int64(math.Round(min(max(seconds, -furthest), furthest) * 1e6)), true
}
