package flashsale

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of tokens.
const (
	// MaxTokenLife is how long a token may live: far less than Retention, so that a rid is known for as long as its token works.
	MaxTokenLife = 15 * time.Minute
	// MinKeyBytes is how long a key must be.
	MinKeyBytes = 32
	maxKeys     = 8
	nonceBytes  = 16
)

// TokenKey is a secret that signs order tokens. Its ID, 1 to 16 letters and digits, is in the token.
type TokenKey struct {
	ID     string
	Secret []byte
}

// TokenKeys are the keys in use: the first signs, all of them verify. To rotate, put a new one first (Replace), and take the old one
// away after MaxTokenLife. They are safe for concurrent use.
type TokenKeys struct {
	keys atomic.Pointer[[]TokenKey]
}

// NewTokenKeys returns keys, 1 to 8 of them, each of at least MinKeyBytes and with an ID of its own.
func NewTokenKeys(keys ...TokenKey) (*TokenKeys, error) {
	k := &TokenKeys{}
	if err := k.Replace(keys...); err != nil {
		return nil, err
	}
	return k, nil
}

// Replace puts other keys in use.
func (k *TokenKeys) Replace(keys ...TokenKey) error {
	if len(keys) == 0 || len(keys) > maxKeys {
		return invalidf("order tokens: %d keys; give 1 to %d", len(keys), maxKeys)
	}
	kept, seen := make([]TokenKey, len(keys)), map[string]bool{}
	for i, key := range keys {
		if !alphanumeric(key.ID) || len(key.ID) > 16 || seen[key.ID] {
			return invalidf("order tokens: the id of key %d must be 1 to 16 letters and digits, and its own", i+1)
		}
		if len(key.Secret) < MinKeyBytes {
			return invalidf("order tokens: key %s has %d bytes; give at least %d random ones", key.ID, len(key.Secret), MinKeyBytes)
		}
		seen[key.ID] = true
		kept[i] = TokenKey{ID: key.ID, Secret: append([]byte(nil), key.Secret...)}
	}
	k.keys.Store(&kept)
	return nil
}

// TokenScope is what a token is good for: nothing else, and nobody else.
type TokenScope struct {
	Key          Key
	User, Device string
}

// Token is an order token that was verified.
type Token struct {
	// RID is the reservation's id: the token's nonce, so that a token makes at most one reservation.
	RID       string
	ExpiresAt time.Time
}

// Issue makes a token that expires at a time, with a nonce out of random.
func (k *TokenKeys) Issue(random io.Reader, scope TokenScope, expires time.Time) (string, error) {
	var raw [nonceBytes + 8]byte
	if _, err := io.ReadFull(random, raw[:nonceBytes]); err != nil {
		return "", &Error{Code: CodeInternal, Message: "order tokens: no randomness", Err: err}
	}
	binary.BigEndian.PutUint64(raw[nonceBytes:], uint64(expires.UnixMilli()))
	key := &(*k.keys.Load())[0]
	mac := key.sign(raw[:], &scope)
	return key.ID + "." + base64.RawURLEncoding.EncodeToString(raw[:]) + "." + base64.RawURLEncoding.EncodeToString(mac), nil
}

// Verify checks that a token was issued for this scope. Whether it has expired is for the caller to say, since a repeated call with
// an expired one is still answered as it was. The error's code is CodeInvalidToken, whatever is wrong.
func (k *TokenKeys) Verify(token string, scope TokenScope) (Token, error) {
	id, rest, _ := strings.Cut(token, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil || len(raw) != nonceBytes+8 {
		return Token{}, tokenError()
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil {
		return Token{}, tokenError()
	}
	keys := *k.keys.Load()
	for i := range keys {
		if key := &keys[i]; key.ID == id && hmac.Equal(mac, key.sign(raw, &scope)) {
			return Token{
				RID:       base64.RawURLEncoding.EncodeToString(raw[:nonceBytes]),
				ExpiresAt: time.UnixMilli(int64(binary.BigEndian.Uint64(raw[nonceBytes:]))),
			}, nil
		}
	}
	return Token{}, tokenError()
}

func tokenError() error {
	return &Error{Code: CodeInvalidToken, Message: "the order token is not valid for this user, device and sku"}
}

// sign returns an HMAC-SHA256 over all that a token stands for, each part with its length.
func (k *TokenKey) sign(raw []byte, scope *TokenScope) []byte {
	mac := hmac.New(sha256.New, k.Secret)
	mac.Write([]byte("headgate order token 1\n"))
	mac.Write(raw)
	for _, part := range []string{scope.User, scope.Key.Sale, scope.Key.SKU, scope.Device} {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

func alphanumeric(s string) bool {
	for _, c := range []byte(s) {
		if !isAlphanumeric(c) {
			return false
		}
	}
	return s != ""
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func invalidf(format string, args ...any) error {
	return &Error{Code: CodeInvalidArgument, Message: fmt.Sprintf(format, args...)}
}
