package credential

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Bounds of tokens.
const (
	// maxToken is how long a token may be, in bytes: as long as a header line is in most servers.
	maxToken = 8 << 10
	// cachedTokens is how many good tokens are remembered.
	cachedTokens = 4096
	// maxTrials is how many keys are tried for one token, so that a token which names no key costs little more than one
	// that does.
	maxTrials = 8
	maxLeeway = time.Hour
)

// JWTConfig says which tokens are believed, and what is taken out of them.
type JWTConfig struct {
	// Keys are the bytes of a JSON Web Key Set; or of one public key or certificate in PEM, whose dates are not looked at;
	// or of a secret. The line end behind a secret of printable ASCII is not part of it.
	Keys []byte
	// JWKS tells that Keys is a JSON Web Key Set.
	JWKS bool
	// Algorithms are the only ones that are believed. Empty: for each key what its alg says or, without one, RS256 for RSA,
	// ES256, ES384 and ES512 for the curves P-256, P-384 and P-521, EdDSA for Ed25519. A secret needs them: HS256, HS384,
	// HS512.
	Algorithms []string
	// Claim is the claim that holds the value: the one of exactly that name, or else the one that its dots lead to.
	Claim string
	// Issuer and Audience are what iss must be and aud must be or hold; "" for any, and for none.
	Issuer, Audience string
	// Leeway is how far the issuer's clock may be from ours, up to an hour.
	Leeway time.Duration
}

// JWT takes a claim out of signed tokens. It remembers the tokens that it has found good, and is safe for concurrent use.
type JWT struct {
	cfg  JWTConfig
	keys []key
	// unused says what keys of a set are not used and why.
	unused []string
	// accepted are the algorithms of all keys.
	accepted []jose.SignatureAlgorithm
	cache    *lru.Cache[[sha256.Size]byte, proof]
}

// proof is what is known of a token whose signature, issuer and audience are right. Times are in µs since the epoch.
type proof struct {
	value string
	// The token is good while begin ≤ now < end.
	begin, end int64
}

// NewJWT reads the keys. Refused are keys that are weak (RSA below 2048 bits, secrets shorter than 32 bytes or than the hash of
// their algorithm), private keys, secrets beside public keys or with their algorithms, keys that are malformed, and a set
// without a key that is of use. Keys of a set that are for something else are left out, see [JWT.Unused]. Errors say what is
// wrong and what to do, and never quote the keys.
func NewJWT(cfg JWTConfig) (*JWT, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	j := &JWT{cfg: cfg}
	j.cfg.Keys = nil
	if err := j.readKeys(cfg.Keys); err != nil {
		return nil, err
	}
	for _, k := range j.keys {
		for _, a := range k.algorithms {
			j.accepted = append(j.accepted, jose.SignatureAlgorithm(a))
		}
	}
	var err error
	j.cache, err = lru.New[[sha256.Size]byte, proof](cachedTokens)
	return j, err
}

func (cfg *JWTConfig) validate() error {
	switch {
	case cfg.Claim == "":
		return errors.New("no claim is named; most tokens have who they are for in sub")
	case cfg.Leeway < 0 || cfg.Leeway > maxLeeway:
		return fmt.Errorf("a leeway of %s is not between 0 and %s", cfg.Leeway, maxLeeway)
	case len(cfg.Keys) == 0:
		return errors.New("is empty; it needs a key set, a public key in PEM, or a secret")
	case len(cfg.Keys) > maxKeyBytes:
		return fmt.Errorf("has %d bytes; at most %d are read", len(cfg.Keys), maxKeyBytes)
	}
	for _, name := range cfg.Algorithms {
		if _, known := algorithmOf(name); !known {
			return fmt.Errorf("algorithm %.20q is unknown; there are %s", name, strings.Join(algorithmNames(anyFamily), ", "))
		}
	}
	return nil
}

// Unused says in a sentence each which keys of a set are not used, and why. A key is named by its place in the set.
func (j *JWT) Unused() []string { return j.unused }

// Value returns the claim of a token that is good at that time: signed by one of the keys with an algorithm which is that
// key's, begun and not expired, of the issuer and for the audience. Else it is missing, as it is if the claim is not there, is
// no string and no whole number in plain digits, or is empty. Whatever its signature, a token is missing that is longer than 8
// kB, is written in more than one way (padding, bits that decoding drops), has a key twice in its header or its claims, holds
// another token, is encrypted, or has critical headers. Keys that a token brings along, or points to, are never used.
//
// A token that names a key (kid) is verified with the keys of that name, and with those that have no name; one that names
// none, with up to 8 keys of its algorithm. A token without exp never expires.
func (j *JWT) Value(token string, now time.Time) (value string, ok bool) {
	if len(token) == 0 || len(token) > maxToken {
		return "", false
	}
	sum := sumOf(token)
	known, cached := j.cache.Get(sum)
	if !cached {
		if known, ok = j.prove(token); !ok {
			return "", false
		}
	}
	switch at, leeway := now.UnixMicro(), j.cfg.Leeway.Microseconds(); {
	case at-leeway >= known.end:
		if cached {
			j.cache.Remove(sum)
		}
		return "", false
	case at+leeway < known.begin:
		return "", false
	case !cached:
		// Bad tokens cost nobody a place here: to fill it, one needs tokens that the issuer has signed.
		j.cache.Add(sum, known)
	}
	return known.value, true
}

// sumOf hashes a token; one of a common length stays off the heap.
func sumOf(token string) [sha256.Size]byte {
	var room [1536]byte
	return sha256.Sum256(append(room[:0], token...))
}

// prove verifies a token, for any time.
func (j *JWT) prove(token string) (p proof, ok bool) {
	claims, ok := j.verify(token)
	if !ok || !j.meant(claims) {
		return proof{}, false
	}
	p = proof{begin: math.MinInt64, end: math.MaxInt64}
	if p.value, ok = claims.value(j.cfg.Claim); !ok {
		return proof{}, false
	}
	if p.begin, ok = claims.instant("nbf", p.begin); !ok {
		return proof{}, false
	}
	p.end, ok = claims.instant("exp", p.end)
	return p, ok
}

// meant tells whether the token is of the issuer and for the audience.
func (j *JWT) meant(c claims) bool {
	if j.cfg.Issuer != "" && c["iss"] != any(j.cfg.Issuer) {
		return false
	}
	if j.cfg.Audience == "" || c["aud"] == any(j.cfg.Audience) {
		return true
	}
	several, _ := c["aud"].([]any)
	for _, audience := range several {
		if audience == any(j.cfg.Audience) {
			return true
		}
	}
	return false
}
