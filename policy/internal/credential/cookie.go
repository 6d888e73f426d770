package credential

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// Bounds of signed cookies.
const (
	maxCookieKeys  = 16
	minCookieKey   = 16   // bytes
	maxCookieKey   = 1024 // bytes
	maxCookieValue = 4096 // bytes; browsers keep no more
)

// signatureLen is the length of a signature: 32 bytes in base64 without padding.
const signatureLen = 43

// CookieKeys sign the values of cookies and verify them. The text of a signed cookie is VALUE.SIGNATURE, where SIGNATURE
// is the unpadded base64url form of HMAC-SHA256(key, NAME + "=" + VALUE): a value that was signed for one cookie is worth
// nothing in another. The value may hold dots. A signature does not age: what must, has its date in the value.
//
// They never change, and are safe for concurrent use.
type CookieKeys struct{ keys []*cookieKey }

// cookieKey is a key, and what is needed to sign with it, for reuse.
type cookieKey struct {
	text    []byte
	signers sync.Pool
}

// signer has begun a hash with a key, and has room for what it signs and for the outcome.
type signer struct {
	mac  hash.Hash
	text []byte
	sum  [sha256.Size]byte
}

// NewCookieKeys reads a file of keys: one on each line, the characters of the line being the key, 16 to 1024 of printable
// ASCII without the spaces around them. The first signs and all verify, so that a key is replaced by putting the new one in
// front and removing the old one when the cookies it signed are gone. Empty lines, and lines that begin with #, do not count;
// there are at most 16 keys. Errors name the line and never its text.
func NewCookieKeys(file []byte) (*CookieKeys, error) {
	k := &CookieKeys{}
	number := 0
	for line := range bytes.Lines(file) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if err := k.add(line); err != nil {
			return nil, fmt.Errorf("line %d %w", number, err)
		}
	}
	if len(k.keys) == 0 {
		return nil, errors.New("has no key; write one of at least 16 characters on a line, such as 32 random bytes in base64")
	}
	return k, nil
}

func (k *CookieKeys) add(key []byte) error {
	printable := func(r rune) bool { return ' ' <= r && r <= '~' }
	switch {
	case bytes.ContainsFunc(key, func(r rune) bool { return !printable(r) }):
		return errors.New("has characters that are not printable ASCII; write the key in base64 or in hexadecimal digits")
	case len(key) < minCookieKey:
		return fmt.Errorf("has a key of %d characters; it needs at least %d, such as 32 random bytes in base64", len(key), minCookieKey)
	case len(key) > maxCookieKey:
		return fmt.Errorf("has a key of %d characters; at most %d are read", len(key), maxCookieKey)
	case len(k.keys) == maxCookieKeys:
		return fmt.Errorf("has one key more than %d; remove those whose cookies are gone", maxCookieKeys)
	}
	for _, other := range k.keys {
		if bytes.Equal(key, other.text) {
			return errors.New("has a key that is there already; remove one of the two lines")
		}
	}
	own := &cookieKey{text: bytes.Clone(key)}
	own.signers.New = func() any { return &signer{mac: hmac.New(sha256.New, own.text)} }
	k.keys = append(k.keys, own)
	return nil
}

// Verify returns the value of a signed cookie. It is false for a text that none of the keys has signed for a cookie of that
// name, also for a right signature in another spelling (padded, in the other base64 alphabet, with bits set that decoding
// drops), for a value that is empty or longer than 4096 bytes, and for a name that is empty or holds "=". How long it takes
// depends on the length of the text and the number of keys alone.
func (k *CookieKeys) Verify(name, text string) (value string, ok bool) {
	dot := len(text) - signatureLen - 1
	if dot < 1 || dot > maxCookieValue || text[dot] != '.' || name == "" || strings.Contains(name, "=") {
		return "", false
	}
	value = text[:dot]
	var given, want [signatureLen]byte
	copy(given[:], text[dot+1:])
	matches := 0
	for _, key := range k.keys {
		key.sign(&want, name, value)
		matches |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if matches == 0 {
		return "", false
	}
	return value, true
}

// Sign returns the text of a cookie with that value. Nothing verifies a name or a value that Verify rules out.
func (k *CookieKeys) Sign(name, value string) string {
	var signature [signatureLen]byte
	k.keys[0].sign(&signature, name, value)
	return value + "." + string(signature[:])
}

// sign writes a signature. It is compared in this form: whatever else decodes to the same bytes is not it.
func (k *cookieKey) sign(to *[signatureLen]byte, name, value string) {
	s := k.signers.Get().(*signer)
	s.text = append(append(append(s.text[:0], name...), '='), value...)
	s.mac.Reset()
	s.mac.Write(s.text)
	base64.RawURLEncoding.Encode(to[:], s.mac.Sum(s.sum[:0]))
	k.signers.Put(s)
}
