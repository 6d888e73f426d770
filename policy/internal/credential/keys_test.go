package credential

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// testCertificate makes a certificate of a key, signed by itself; it has expired.
func testCertificate(t testing.TB, key *rsa.PrivateKey) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: testNow.Add(-2 * time.Hour), NotAfter: testNow.Add(-time.Hour)}
	return must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// modulus makes a public key that nobody has the other half of.
func modulus(bits int) *rsa.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
	return &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}
}

func TestJWTKeyForms(t *testing.T) {
	t.Parallel()
	signed := signedByHand(rsaKey(), `{"alg":"RS256"}`, `{"sub":"u-17"}`)
	bySecret := signedByHand(secret, `{"alg":"HS256"}`, `{"sub":"u-17"}`)
	random := bytes.Repeat([]byte{0xfe, '\n'}, 16)
	public := publicPEM(t, rsaKey().Public())
	for _, c := range []struct {
		name, token string
		cfg         JWTConfig
	}{
		{"a public key", signed, JWTConfig{Keys: public}},
		{"a public key with text around it", signed, JWTConfig{Keys: append([]byte("the issuer's\n"), append(public, " \r\n"...)...)}},
		{"a public key with the line ends of Windows", signed, JWTConfig{Keys: bytes.ReplaceAll(public, []byte("\n"), []byte("\r\n"))}},
		{"an RSA public key", signed, JWTConfig{Keys: block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey))}},
		{"a certificate, expired", signed, JWTConfig{Keys: block("CERTIFICATE", testCertificate(t, rsaKey()))}},
		{"a key set", signed, JWTConfig{Keys: keySet(t, jwk(rsaKey().Public(), "a", "", "")), JWKS: true}},
		{"a key set of Windows", signed, JWTConfig{Keys: append(keySet(t, jwk(rsaKey().Public(), "a", "RS256", "sig")), "\r\n"...), JWKS: true}},
		{"a secret", bySecret, JWTConfig{Keys: secret, Algorithms: []string{"HS256"}}},
		{"a secret and a line end", bySecret, JWTConfig{Keys: append(bytes.Clone(secret), "\r\n"...), Algorithms: []string{"HS256"}}},
		{"a secret of random bytes", signedByHand(random, `{"alg":"HS256"}`, `{"sub":"u-17"}`), JWTConfig{Keys: random, Algorithms: []string{"HS256"}}},
		{"a secret in a set", bySecret, JWTConfig{Keys: keySet(t, jwk(secret, "a", "HS256", "sig")), JWKS: true}},
		{"a secret in a set, pinned", bySecret, JWTConfig{Keys: keySet(t, jwk(secret, "", "", "")), JWKS: true, Algorithms: []string{"HS256"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want(t, newJWT(t, c.cfg), c.token, "u-17")
		})
	}
}

func TestNewJWTRefuses(t *testing.T) {
	t.Parallel()
	public := publicPEM(t, rsaKey().Public())
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	hs := []string{"HS256"}
	for _, c := range []struct {
		name string
		cfg  JWTConfig
		want string
	}{
		{"no claim", JWTConfig{Keys: public, Claim: "-"}, "no claim is named; most tokens have who they are for in sub"},
		{"a negative leeway", JWTConfig{Keys: public, Leeway: -1}, "a leeway of -1ns is not between 0 and 1h0m0s"},
		{"a long leeway", JWTConfig{Keys: public, Leeway: 2 * time.Hour}, "a leeway of 2h0m0s is not between 0 and 1h0m0s"},
		{"none", JWTConfig{Keys: public, Algorithms: []string{"none"}}, `algorithm "none" is unknown; there are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, HS256, HS384, HS512`},
		{"no bytes", JWTConfig{}, "is empty; it needs a key set, a public key in PEM, or a secret"},
		{"too many bytes", JWTConfig{Keys: make([]byte, maxKeyBytes+1)}, "has 1048577 bytes; at most 1048576 are read"},
		{"PEM cut off", JWTConfig{Keys: public[:100]}, "has no complete PEM block; it may be cut off"},
		{"a private key", JWTConfig{Keys: block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(rsaKey())))}, errPrivate.Error()},
		{"an RSA private key", JWTConfig{Keys: block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey()))}, errPrivate.Error()},
		{"an encrypted private key", JWTConfig{Keys: block("ENCRYPTED PRIVATE KEY", []byte{1})}, errPrivate.Error()},
		{"a private key as a secret", JWTConfig{Keys: block("EC PRIVATE KEY", []byte{1}), Algorithms: hs}, errPrivate.Error()},
		{"two keys", JWTConfig{Keys: append(bytes.Clone(public), public...)}, "has more than one PEM block; of a chain give the first certificate alone, and several keys as a key set"},
		{"a chain", JWTConfig{Keys: slices.Concat(block("CERTIFICATE", testCertificate(t, rsaKey())), block("CERTIFICATE", testCertificate(t, otherRSA())))}, "has more than one PEM block; of a chain give the first certificate alone, and several keys as a key set"},
		{"another block", JWTConfig{Keys: block("DH PARAMETERS", []byte{1})}, `is a PEM block of another kind ("DH PARAMETERS"); it needs PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE`},
		{"a broken block", JWTConfig{Keys: block("PUBLIC KEY", []byte{1})}, `has a PEM block "PUBLIC KEY" that cannot be read; export the key anew`},
		{"a broken certificate", JWTConfig{Keys: block("CERTIFICATE", []byte{1})}, `has a PEM block "CERTIFICATE" that cannot be read; export the key anew`},
		{"a weak key", JWTConfig{Keys: publicPEM(t, modulus(1024))}, "is an RSA key of 1024 bits, which can be broken; have the issuer use one of 2048 at least"},
		{"a key one bit short", JWTConfig{Keys: publicPEM(t, modulus(2047))}, "is an RSA key of 2047 bits, which can be broken; have the issuer use one of 2048 at least"},
		{"a heavy key", JWTConfig{Keys: publicPEM(t, modulus(8192))}, "is an RSA key of 8192 bits; at most 4096 are verified"},
		{"an exponent of 1", JWTConfig{Keys: publicPEM(t, &rsa.PublicKey{N: modulus(2048).N, E: 1})}, "is an RSA key with an exponent or a modulus that no real one has; get it anew from the issuer"},
		{"an even exponent", JWTConfig{Keys: publicPEM(t, &rsa.PublicKey{N: modulus(2048).N, E: 65536})}, "is an RSA key with an exponent or a modulus that no real one has; get it anew from the issuer"},
		{"another curve", JWTConfig{Keys: publicPEM(t, p224.Public())}, "is on another curve than P-256, P-384 and P-521"},
		{"an algorithm of another key", JWTConfig{Keys: public, Algorithms: []string{"ES256"}}, "is for RS256, RS384, RS512, PS256, PS384, PS512, and algorithms names none of these"},
		{"an algorithm of another curve", JWTConfig{Keys: publicPEM(t, ecKey().Public()), Algorithms: []string{"ES384"}}, "is for ES256, and algorithms names none of these"},
		{"a public key for secrets' algorithms", JWTConfig{Keys: public, Algorithms: hs}, "is a public key, and HS256 is for secrets; name algorithms for public keys alone"},
		{"a public key for both", JWTConfig{Keys: public, Algorithms: []string{"RS256", "HS256"}}, "is a public key, and HS256 is for secrets; name algorithms for public keys alone"},
		{"a secret for both", JWTConfig{Keys: secret, Algorithms: []string{"HS256", "RS256"}}, "is a secret, and RS256 is for public keys; name algorithms for secrets alone"},
		{"a secret for public keys", JWTConfig{Keys: secret, Algorithms: []string{"RS256"}}, "is no public key in PEM; if it is a secret, name its algorithms, such as HS256"},
		{"a secret without algorithms", JWTConfig{Keys: secret}, "is no public key in PEM; if it is a secret, name its algorithms, such as HS256"},
		{"a short secret", JWTConfig{Keys: append(bytes.Clone(secret[:31]), '\n'), Algorithms: hs}, "is a secret of 31 bytes; HS256 needs 32 random ones at least"},
		{"a secret short for one of its algorithms", JWTConfig{Keys: secret[:63], Algorithms: []string{"HS256", "HS512"}}, "is a secret of 63 bytes; HS512 needs 64 random ones at least"},
		{"a long secret", JWTConfig{Keys: make([]byte, maxSecret+1), Algorithms: hs}, "is a secret of 4097 bytes; at most 4096 are read"},
		{"line ends for a secret", JWTConfig{Keys: []byte("\n\n"), Algorithms: hs}, "is a secret of 0 bytes; HS256 needs 32 random ones at least"},
		{"a set for a secret", JWTConfig{Keys: keySet(t, jwk(secret, "", "", "")), Algorithms: hs}, "looks like a key set; name it as jwks_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused(t, c.cfg, c.want)
		})
	}
}

func refused(t *testing.T, cfg JWTConfig, want string) {
	t.Helper()
	switch cfg.Claim {
	case "":
		cfg.Claim = "sub"
	case "-":
		cfg.Claim = ""
	}
	j, err := NewJWT(cfg)
	if got := text(err); got != want || j != nil {
		t.Errorf("says %q, want %q", got, want)
	}
	if part := quoted(text(err), cfg.Keys); part != "" {
		t.Errorf("quotes the keys: %q in %q", part, err)
	}
}

// quoted finds ten bytes of a file in a message, but for what stands in every file of its kind.
func quoted(message string, file []byte) string {
	for _, head := range []string{"DH PARAMETERS", "RSA PUBLIC KEY", "PUBLIC KEY", "CERTIFICATE"} {
		message = strings.ReplaceAll(message, head, "")
	}
	for i := range len(message) - 9 {
		if part := message[i : i+10]; bytes.Contains(file, []byte(part)) {
			return part
		}
	}
	return ""
}

func TestNewJWTRefusesSets(t *testing.T) {
	t.Parallel()
	good := jwk(rsaKey().Public(), "good", "", "")
	n := base64.RawURLEncoding.EncodeToString(rsaKey().N.Bytes())
	many := make([]any, maxKeys+1)
	for i := range many {
		many[i] = good
	}
	for _, c := range []struct {
		name, set string
		pinned    []string
		want      string
	}{
		{"PEM", string(publicPEM(t, rsaKey().Public())), nil, "is PEM and no key set; name it as key_file"},
		{"no JSON", "keys", nil, "is not valid JSON, or has a key twice in an object; get it anew from the issuer"},
		{"keys twice", `{"keys":[],"keys":[]}`, nil, "is not valid JSON, or has a key twice in an object; get it anew from the issuer"},
		{"a list", `[]`, nil, `is no JSON object; a key set is {"keys": [ … ]}`},
		{"null", `null`, nil, `is no JSON object; a key set is {"keys": [ … ]}`},
		{"one key", string(must(good.MarshalJSON())), nil, `is one key and no set; write {"keys": [ … ]} around it`},
		{"no keys", `{"Keys":[]}`, nil, `has no list "keys", so it is no key set`},
		{"keys that are no list", `{"keys":{}}`, nil, `has something else than a list in "keys"`},
		{"keys that are null", `{"keys":null}`, nil, `has something else than a list in "keys"`},
		{"an empty list", `{"keys":[]}`, nil, "has no key in it; tokens need one to be verified with"},
		{"too many", string(keySet(t, many...)), nil, "has 65 keys; at most 64 are read"},
		{"a key that is no object", `{"keys":["` + n + `"]}`, nil, "key 1 is no JSON object"},
		{"a key that is null", string(keySet(t, good, `null`)), nil, "key 2 is no JSON object"},
		{"a kid that is no text", `{"keys":[{"kty":"RSA","kid":7}]}`, nil, `key 1 has something else than text in "kid"`},
		{"operations that are no list", `{"keys":[{"kty":"RSA","key_ops":"verify"}]}`, nil, `key 1 has something else than text in "key_ops"`},
		{"a private key", string(keySet(t, good, jwk(rsaKey(), "", "", ""))), nil, "key 2 " + errPrivate.Error()},
		{"a private key for something else", string(keySet(t, good, jwk(ecKey(), "", "", "enc"))), nil, "key 2 " + errPrivate.Error()},
		{"a private key of Ed25519", string(keySet(t, jwk(edKey, "", "", ""))), nil, "key 1 " + errPrivate.Error()},
		{"a private key of a type to come", string(keySet(t, good, `{"kty":"AKP","alg":"ML-DSA-44","priv":"AA"}`)), nil, "key 2 " + errPrivate.Error()},
		{"a weak key", string(keySet(t, good, jwk(modulus(1024), "", "", ""))), nil, "key 2 is an RSA key of 1024 bits, which can be broken; have the issuer use one of 2048 at least"},
		{"a key without its numbers", `{"keys":[{"kty":"RSA"}]}`, nil, "key 1 is malformed; get the set anew from the issuer"},
		{"a key in the other alphabet", `{"keys":[{"kty":"RSA","e":"AQAB","n":"` + n + `+/=="}]}`, nil, "key 1 is malformed; get the set anew from the issuer"},
		{"a key that is a number", `{"keys":[{"kty":"RSA","e":"AQAB","n":1234567890123}]}`, nil, "key 1 is malformed; get the set anew from the issuer"},
		{"a point that is not on its curve", `{"keys":[{"kty":"EC","crv":"P-256","x":"` + strings.Repeat("A", 43) + `","y":"` + strings.Repeat("A", 43) + `"}]}`, nil, "key 1 is malformed; get the set anew from the issuer"},
		{"a secret without an algorithm", string(keySet(t, jwk(secret, "", "", ""))), nil, "key 1 is a secret; name its algorithms, such as HS256"},
		{"a short secret", string(keySet(t, jwk(secret[:31], "", "HS256", ""))), nil, "key 1 is a secret of 31 bytes; HS256 needs 32 random ones at least"},
		{"a secret for public keys' algorithms", string(keySet(t, good, jwk(secret, "", "", ""))), []string{"RS256"}, "key 2 is a secret, and RS256 is for public keys; name algorithms for secrets alone"},
		{"a secret beside a public key", string(keySet(t, good, jwk(secret, "", "HS256", ""))), nil, "has secrets beside public keys; keep one kind, and the other in a set of its own"},
		{"a public key for secrets' algorithms", string(keySet(t, good)), []string{"HS256"}, "key 1 is a public key, and HS256 is for secrets; name algorithms for public keys alone"},
		{
			"nothing of use", string(keySet(t, jwk(rsaKey().Public(), "", "", "enc"), jwk(rsaKey().Public(), "", "RSA-OAEP", ""), `{"kty":"XYZ"}`)), nil,
			"has no key that tokens can be verified with: key 1 is not for signatures; key 2 is for an algorithm that does not sign tokens, or not with a key of its type; key 3 is of an unknown type",
		},
		{"none of the pinned", string(keySet(t, jwk(ecKey().Public(), "", "", ""))), []string{"RS256"}, "has no key that tokens can be verified with: key 1 is for ES256, and algorithms names none of these"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			refused(t, JWTConfig{Keys: []byte(c.set), JWKS: true, Algorithms: c.pinned}, c.want)
		})
	}
}

// TestJWTSet has several keys, some of which are for something else.
func TestJWTSet(t *testing.T) {
	t.Parallel()
	withOps := string(must(jwk(otherRSA().Public(), "ops", "", "").MarshalJSON()))
	withOps = strings.Replace(withOps, "{", `{"key_ops":["encrypt","wrapKey"],`, 1)
	set := keySet(t,
		jwk(rsaKey().Public(), "rsa", "RS256", "sig"),
		jwk(otherRSA().Public(), "enc", "", "enc"),
		jwk(ecKey().Public(), "ec", "", "sig"),
		`{"kty":"OKP","crv":"X25519","x":"`+strings.Repeat("A", 43)+`","kid":"x"}`,
		`{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA","kid":"k1"}`,
		withOps,
		jwk(modulus(8192), "heavy", "", ""),
		jwk(edKey.Public(), "ed", "", ""),
	)
	j := newJWT(t, JWTConfig{Keys: set, JWKS: true})
	unused := []string{
		"key 2 is not for signatures",
		"key 4 is of a size or on a curve that is not supported",
		"key 5 is of a size or on a curve that is not supported",
		"key 6 is not for signatures",
		"key 7 is of a size or on a curve that is not supported",
	}
	if !slices.Equal(j.Unused(), unused) {
		t.Errorf("unused are %q, want %q", j.Unused(), unused)
	}
	claims := claimsUntil(testNow.Add(time.Hour))
	kid := func(name string) map[string]any { return map[string]any{"kid": name} }
	for _, c := range []struct {
		name, token string
		want        bool
	}{
		{"RSA", token(t, "RS256", rsaKey(), kid("rsa"), claims), true},
		{"EC", token(t, "ES256", ecKey(), kid("ec"), claims), true},
		{"Ed25519", token(t, "EdDSA", edKey, kid("ed"), claims), true},
		{"RSA without a name", token(t, "RS256", rsaKey(), nil, claims), true},
		{"EC without a name", token(t, "ES256", ecKey(), nil, claims), true},
		{"RSA with an empty name", token(t, "RS256", rsaKey(), kid(""), claims), true},
		{"an unknown name", token(t, "RS256", rsaKey(), kid("new"), claims), false},
		{"a name in another case", token(t, "RS256", rsaKey(), kid("RSA"), claims), false},
		{"the name of another", token(t, "RS256", rsaKey(), kid("ec"), claims), false},
		{"the name of a key for something else", token(t, "RS256", otherRSA(), kid("enc"), claims), false},
		{"a key for something else, without a name", token(t, "RS256", otherRSA(), nil, claims), false},
		{"a key with other operations", token(t, "RS256", otherRSA(), kid("ops"), claims), false},
		{"an algorithm that is not the key's", token(t, "RS512", rsaKey(), kid("rsa"), claims), false},
		{"an algorithm of another key's", token(t, "PS256", rsaKey(), nil, claims), false},
		{"a public key as a secret", signedByHand(publicPEM(t, rsaKey().Public()), `{"alg":"HS256","kid":"rsa"}`, claims), false},
		{"a public key's point as a secret", signedByHand([]byte(edKey.Public().(ed25519.PublicKey)), `{"alg":"HS256","kid":"ed"}`, claims), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			value := ""
			if c.want {
				value = "u-17"
			}
			want(t, j, c.token, value)
		})
	}
}

// TestJWTSetRotates: while keys change, two have one name, or none.
func TestJWTSetRotates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "same"} {
		j := newJWT(t, JWTConfig{Keys: keySet(t, jwk(rsaKey().Public(), name, "", ""), jwk(otherRSA().Public(), name, "", "")), JWKS: true})
		for _, header := range []string{`{"alg":"RS256"}`, `{"alg":"RS256","kid":"same"}`} {
			want(t, j, signedByHand(rsaKey(), header, `{"sub":"u-17"}`), "u-17")
			want(t, j, signedByHand(otherRSA(), header, `{"sub":"u-18"}`), "u-18")
		}
	}
}

// TestJWTTrialsAreBounded: a token that names no key is tried with the first keys alone; one that names it is found.
func TestJWTTrialsAreBounded(t *testing.T) {
	t.Parallel()
	var keys []any
	for i := range 20 {
		keys = append(keys, jwk([]byte(fmt.Sprintf("%s%02d", secret, i)), fmt.Sprint(i), "HS256", ""))
	}
	j := newJWT(t, JWTConfig{Keys: keySet(t, keys...), JWKS: true})
	for i := range 20 {
		key := []byte(fmt.Sprintf("%s%02d", secret, i))
		want(t, j, signedByHand(key, fmt.Sprintf(`{"alg":"HS256","kid":"%d"}`, i), `{"sub":"u-17"}`), "u-17")
		value := "u-17"
		if i >= maxTrials {
			value = ""
		}
		want(t, j, signedByHand(key, `{"alg":"HS256"}`, `{"sub":"u-17"}`), value)
	}
}

func FuzzJWT(f *testing.F) {
	set := newJWT(f, JWTConfig{Keys: keySet(f, jwk(edKey.Public(), "ed", "", ""), jwk(ecKey().Public(), "ec", "", "")), JWKS: true})
	secrets := newJWT(f, JWTConfig{Keys: secret, Algorithms: []string{"HS256"}})
	f.Add(token(f, "EdDSA", edKey, map[string]any{"kid": "ed"}, `{"sub":"u-17"}`), `{"alg":"HS256"}`, `{"sub":"u-17"}`)
	f.Add("..", `{"alg":"HS256","jwk":{"kty":"oct","k":"AA"},"x5c":["AA"]}`, `{"sub":1e3,"exp":-1.5,"aud":[]}`)
	f.Fuzz(func(t *testing.T, token, header, claims string) {
		if value, ok := set.Value(token, testNow); ok && value != "u-17" {
			t.Fatalf("nobody has signed %q for %q", token, value)
		}
		first, ok := secrets.Value(signedByHand(secret, header, claims), testNow)
		again, okAgain := secrets.Value(signedByHand(secret, header, claims), testNow)
		if first != again || ok != okAgain || ok != (first != "") {
			t.Fatalf("%q, %v and then %q, %v", first, ok, again, okAgain)
		}
		if _, ok := secrets.Value(signedByHand(secret[1:], header, claims), testNow); ok {
			t.Fatal("another secret's signature is good")
		}
	})
}

func FuzzNewJWT(f *testing.F) {
	f.Add(keySet(f, jwk(edKey.Public(), "ed", "", "")), true, "")
	f.Add(publicPEM(f, ecKey().Public()), false, "ES256")
	f.Add(secret, false, "HS256")
	f.Fuzz(func(t *testing.T, keys []byte, set bool, pinned string) {
		cfg := JWTConfig{Keys: keys, JWKS: set, Claim: "sub"}
		if pinned != "" {
			cfg.Algorithms = []string{pinned}
		}
		j, err := NewJWT(cfg)
		switch {
		case (err == nil) != (j != nil):
			t.Fatalf("made %v, error %v", j != nil, err)
		case err == nil && len(j.accepted) == 0:
			t.Fatal("nothing can be believed")
		case err == nil:
			j.Value(signedByHand(secret, `{"alg":"HS256"}`, `{"sub":"u-17"}`), testNow)
		}
	})
}
