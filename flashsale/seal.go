package flashsale

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strings"
)

// maxSealed bounds what Seal takes, in bytes.
const maxSealed = 1024

// Seal makes a text that says nothing to whoever has it, and that these keys alone open: "KEYID.BASE64URL", with AES-256-GCM under a key that is
// derived (HKDF-SHA256, RFC 5869) from the first of them, so that no order token can pass for it. Context, which is not in the text, is what it
// is good for: with another one it does not open. Random gives the nonce, 96 bits. The secret has at most 1024 bytes.
func (k *TokenKeys) Seal(random io.Reader, context string, secret []byte) (string, error) {
	if len(secret) > maxSealed {
		return "", invalidf("sealing %d bytes; give at most %d", len(secret), maxSealed)
	}
	key := &(*k.keys.Load())[0]
	box, err := key.box()
	if err != nil {
		return "", err
	}
	nonce := make([]byte, box.NonceSize(), box.NonceSize()+len(secret)+box.Overhead())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return "", &Error{Code: CodeInternal, Message: "sealing: no randomness", Err: err}
	}
	sealed := box.Seal(nonce, nonce, secret, []byte(context))
	return key.ID + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns what was sealed for this context. The error's code is CodeInvalidToken, whatever is wrong.
func (k *TokenKeys) Open(context, text string) ([]byte, error) {
	id, payload, _ := strings.Cut(text, ".")
	if len(payload) > base64.RawURLEncoding.EncodedLen(maxSealed+64) {
		return nil, notSealed()
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil {
		return nil, notSealed()
	}
	keys := *k.keys.Load()
	for i := range keys {
		if keys[i].ID != id {
			continue
		}
		box, err := keys[i].box()
		if err != nil || len(sealed) < box.NonceSize() {
			return nil, notSealed()
		}
		secret, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], []byte(context))
		if err != nil {
			return nil, notSealed()
		}
		return secret, nil
	}
	return nil, notSealed()
}

func notSealed() error {
	return &Error{Code: CodeInvalidToken, Message: "the text was not sealed by these keys for this use"}
}

func (k *TokenKey) box() (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, k.Secret, nil, "headgate sealed text 1", 32)
	if err != nil {
		return nil, &Error{Code: CodeInternal, Message: "sealing: no key", Err: err}
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, &Error{Code: CodeInternal, Message: "sealing: no cipher", Err: err}
	}
	return cipher.NewGCM(block)
}
