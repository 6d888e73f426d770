package httpverdict

import "math/rand/v2"

// idDigits leaves out i, l, o and u, which people misread on a screenshot.
const idDigits = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns a name for a verdict: 13 characters that carry 64 random bits of the runtime's ChaCha8 generator.
func NewID() string {
	var id [13]byte
	return string(AppendID(id[:0]))
}

// AppendID appends what NewID returns.
func AppendID(b []byte) []byte {
	bits := rand.Uint64()
	for range 13 {
		b = append(b, idDigits[bits&31])
		bits >>= 5
	}
	return b
}
