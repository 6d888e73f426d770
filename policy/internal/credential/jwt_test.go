package credential

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The keys of the tests; an RSA key takes long to make, so they are made once.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	otherRSA = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	ec384Key = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	ec521Key = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)) })
	edKey    = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	secret   = []byte("Zm9vIGJhciBiYXogcXV4IGNvcmdlIGdyYXVsdCBnYXJwbHkgd2FsZG8gZnJlZDEy")
	testNow  = time.Date(2026, 11, 11, 20, 0, 0, 0, time.UTC)
	rawURL   = base64.RawURLEncoding
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// token signs claims, given as JSON.
func token(t testing.TB, algorithm string, key any, header map[string]any, claims string) string {
	t.Helper()
	options := &jose.SignerOptions{}
	for name, value := range header {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(claims))
	if err != nil {
		t.Fatal(err)
	}
	return must(signed.CompactSerialize())
}

// signedByHand signs a header and claims as they are, with SHA-256.
func signedByHand(key any, header, claims string) string {
	text := rawURL.EncodeToString([]byte(header)) + "." + rawURL.EncodeToString([]byte(claims))
	var signature []byte
	switch key := key.(type) {
	case *rsa.PrivateKey:
		sum := sha256.Sum256([]byte(text))
		signature = must(rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:]))
	case []byte:
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		signature = mac.Sum(nil)
	}
	return text + "." + rawURL.EncodeToString(signature)
}

// unencoded signs the claims as they are, which a header can ask for (RFC 7797).
func unencoded(header, claims string) string {
	head := rawURL.EncodeToString([]byte(header))
	sum := sha256.Sum256([]byte(head + "." + claims))
	signature := must(rsa.SignPKCS1v15(nil, rsaKey(), crypto.SHA256, sum[:]))
	return head + "." + rawURL.EncodeToString([]byte(claims)) + "." + rawURL.EncodeToString(signature)
}

func publicPEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func newJWT(t testing.TB, cfg JWTConfig) *JWT {
	t.Helper()
	if cfg.Claim == "" {
		cfg.Claim = "sub"
	}
	j, err := NewJWT(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// keySet makes a key set of keys and, as they are, of texts.
func keySet(t testing.TB, keys ...any) []byte {
	t.Helper()
	var list []json.RawMessage
	for _, k := range keys {
		if text, ok := k.(string); ok {
			list = append(list, json.RawMessage(text))
			continue
		}
		list = append(list, must(k.(jose.JSONWebKey).MarshalJSON()))
	}
	return must(json.Marshal(map[string]any{"keys": list}))
}

func jwk(key any, kid, algorithm, use string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: algorithm, Use: use}
}

func claimsUntil(exp time.Time) string { return fmt.Sprintf(`{"sub":"u-17","exp":%d}`, exp.Unix()) }

func TestJWTAlgorithms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		algorithm    string
		sign, public any
		bySelf       bool // also when none is pinned
	}{
		{"RS256", rsaKey(), rsaKey().Public(), true},
		{"RS384", rsaKey(), rsaKey().Public(), false},
		{"RS512", rsaKey(), rsaKey().Public(), false},
		{"PS256", rsaKey(), rsaKey().Public(), false},
		{"PS384", rsaKey(), rsaKey().Public(), false},
		{"PS512", rsaKey(), rsaKey().Public(), false},
		{"ES256", ecKey(), ecKey().Public(), true},
		{"ES384", ec384Key(), ec384Key().Public(), true},
		{"ES512", ec521Key(), ec521Key().Public(), true},
		{"EdDSA", edKey, edKey.Public(), true},
		{"HS256", secret, secret, false},
		{"HS384", secret, secret, false},
		{"HS512", secret, secret, false},
	} {
		t.Run(c.algorithm, func(t *testing.T) {
			t.Parallel()
			file, isSecret := c.public.([]byte)
			if !isSecret {
				file = publicPEM(t, c.public)
			}
			signed := token(t, c.algorithm, c.sign, nil, claimsUntil(testNow.Add(time.Hour)))
			pinned := newJWT(t, JWTConfig{Keys: file, Algorithms: []string{c.algorithm}})
			want(t, pinned, signed, "u-17")
			set := newJWT(t, JWTConfig{Keys: keySet(t, jwk(c.public, "k1", c.algorithm, "sig")), JWKS: true})
			want(t, set, signed, "u-17")
			if isSecret {
				return
			}
			unpinned := newJWT(t, JWTConfig{Keys: file})
			if _, ok := unpinned.Value(signed, testNow); ok != c.bySelf {
				t.Errorf("believed %v where no algorithm is pinned, want %v", ok, c.bySelf)
			}
		})
	}
}

// want checks what a token is worth, "" for missing, when it is new and when it is known.
func want(t *testing.T, j *JWT, token, value string) {
	t.Helper()
	for _, when := range []string{"first", "again"} {
		got, ok := j.Value(token, testNow)
		if got != value || ok != (value != "") {
			t.Errorf("%s: %q, %v, want %q", when, got, ok, value)
		}
	}
}

func TestJWTHostileTokens(t *testing.T) {
	t.Parallel()
	file := publicPEM(t, rsaKey().Public())
	j := newJWT(t, JWTConfig{Keys: file})
	claims := claimsUntil(testNow.Add(time.Hour))
	good := signedByHand(rsaKey(), `{"alg":"RS256"}`, claims)
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	want(t, j, good, "u-17")

	header := func(text string) string { return signedByHand(rsaKey(), text, claims) }
	payload := func(text string) string { return signedByHand(rsaKey(), `{"alg":"RS256"}`, text) }
	unsigned := func(alg string) string {
		return rawURL.EncodeToString([]byte(`{"alg":"`+alg+`"}`)) + "." + body + "."
	}
	attacker := jwk(otherRSA().Public(), "", "", "")
	embedded := string(must(attacker.MarshalJSON()))
	certificate := base64.StdEncoding.EncodeToString(testCertificate(t, otherRSA()))
	der := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))

	for _, c := range []struct{ name, token string }{
		{"none, without a signature", unsigned("none")},
		{"None", unsigned("None")},
		{"NONE", unsigned("NONE")},
		{"nOnE", unsigned("nOnE")},
		{"none, with a signature", unsigned("none") + signature},
		{"none, signed", header(`{"alg":"none"}`)},
		{"no algorithm", header(`{"typ":"JWT"}`)},
		{"an empty algorithm", header(`{"alg":""}`)},
		{"an algorithm that is null", header(`{"alg":null}`)},
		{"an algorithm that is no text", header(`{"alg":["RS256"]}`)},
		{"an algorithm in small letters", header(`{"alg":"rs256"}`)},
		{"an algorithm under another name", header(`{"Alg":"RS256"}`)},
		{"an algorithm twice", header(`{"alg":"RS256","alg":"RS256"}`)},
		{"an algorithm twice, once escaped", header(`{"alg":"RS256","\u0061lg":"none"}`)},
		{"an algorithm that is not pinned", header(`{"alg":"RS512"}`)},
		{"the public key as a secret, PEM", signedByHand(file, `{"alg":"HS256"}`, claims)},
		{"the public key as a secret, DER", signedByHand(der, `{"alg":"HS256"}`, claims)},
		{"the public key as a secret, modulus", signedByHand(rsaKey().N.Bytes(), `{"alg":"HS256"}`, claims)},
		{"an empty secret", signedByHand([]byte{}, `{"alg":"HS256"}`, claims)},
		{"the public key as a secret, called RS256", signedByHand(file, `{"alg":"RS256"}`, claims)},
		{"another key", signedByHand(otherRSA(), `{"alg":"RS256"}`, claims)},
		{"another key, embedded", signedByHand(otherRSA(), `{"alg":"RS256","jwk":`+embedded+`}`, claims)},
		{"another key, in a certificate", signedByHand(otherRSA(), `{"alg":"RS256","x5c":["`+certificate+`"]}`, claims)},
		{"another key, by address", signedByHand(otherRSA(), `{"alg":"RS256","jku":"https://attacker.example/keys"}`, claims)},
		{"another key, by a certificate's address", signedByHand(otherRSA(), `{"alg":"RS256","x5u":"https://attacker.example/cert"}`, claims)},
		{"another key, by a file", signedByHand([]byte{0}, `{"alg":"HS256","kid":"../../dev/null"}`, claims)},
		{"critical headers", header(`{"alg":"RS256","crit":["exp"],"exp":1}`)},
		{"critical headers, none", header(`{"alg":"RS256","crit":[]}`)},
		{"a payload that is not encoded", header(`{"alg":"RS256","crit":["b64"],"b64":false}`)},
		{"a payload that is not encoded, not critical", header(`{"alg":"RS256","b64":false}`)},
		{"a payload that is not encoded, signed so", unencoded(`{"alg":"RS256","b64":false}`, claims)},
		{"a payload that is said to be encoded", header(`{"alg":"RS256","b64":true}`)},
		{"b64, true", header(`{"alg":"RS256","b64":true,"crit":["b64"]}`)},
		{"a nested token", header(`{"alg":"RS256","cty":"JWT"}`)},
		{"a nested token, in small letters", header(`{"alg":"RS256","cty":"application/jwt"}`)},
		{"a content type that is no text", header(`{"alg":"RS256","cty":1}`)},
		{"an encrypted header", header(`{"alg":"RS256","enc":"A256GCM"}`)},
		{"a kid that is no text", header(`{"alg":"RS256","kid":1}`)},
		{"a header that is no object", header(`["RS256"]`)},
		{"a header that is null", header(`null`)},
		{"a header that is no JSON", header(`{"alg":"RS256"`)},
		{"a header with something behind", header(`{"alg":"RS256"}{}`)},
		{"a deep header", header(`{"alg":"RS256","x":` + nest("[", "", "]", 100) + `}`)},

		{"expired", payload(claimsUntil(testNow.Add(-time.Second)))},
		{"expiring now", payload(claimsUntil(testNow))},
		{"expired long ago", payload(`{"sub":"u-17","exp":0}`)},
		{"expired before the epoch", payload(`{"sub":"u-17","exp":-1e300}`)},
		{"an expiry beyond all numbers", payload(`{"sub":"u-17","exp":1e400}`)},
		{"an expiry that is text", payload(`{"sub":"u-17","exp":"9999999999"}`)},
		{"an expiry that is null", payload(`{"sub":"u-17","exp":null}`)},
		{"an expiry twice", payload(`{"sub":"u-17","exp":1,"exp":9999999999}`)},
		{"not yet valid", payload(fmt.Sprintf(`{"sub":"u-17","nbf":%d}`, testNow.Unix()+1))},
		{"a begin that is text", payload(`{"sub":"u-17","nbf":"0"}`)},

		{"no claim", payload(`{"uid":"u-17"}`)},
		{"an empty claim", payload(`{"sub":""}`)},
		{"a claim that is null", payload(`{"sub":null}`)},
		{"a claim that is true", payload(`{"sub":true}`)},
		{"a claim that is an array", payload(`{"sub":["u-17"]}`)},
		{"a claim that is an object", payload(`{"sub":{"id":"u-17"}}`)},
		{"a claim with a fraction", payload(`{"sub":17.0}`)},
		{"a claim with an exponent", payload(`{"sub":17e3}`)},
		{"a claim of minus zero", payload(`{"sub":-0}`)},
		{"a claim under another name", payload(`{"Sub":"u-17"}`)},
		{"a claim twice", payload(`{"sub":"u-17","sub":"u-17"}`)},
		{"a claim with half a character", payload(`{"sub":"\ud800"}`)},
		{"claims that are no object", payload(`["u-17"]`)},
		{"claims that are null", payload(`null`)},
		{"claims that are text", payload(`"u-17"`)},
		{"claims that are no JSON", payload(`sub=u-17`)},
		{"deep claims", payload(`{"sub":"u-17","x":` + nest("[", "", "]", 100) + `}`)},
		{"claims that are not UTF-8", payload("{\"sub\":\"u-\xff\"}")},

		{"nothing", ""},
		{"a dot", "."},
		{"dots", ".."},
		{"many dots", strings.Repeat(".", maxToken)},
		{"one part", head},
		{"two parts", head + "." + body},
		{"four parts", good + "." + body},
		{"five parts", good + "." + body + "." + signature},
		{"no signature", head + "." + body + "."},
		{"no claims", head + ".." + signature},
		{"no header", "." + body + "." + signature},
		{"cut off", good[:len(good)-1]},
		{"cut off in the claims", good[:len(head)+10]},
		{"longer", good + "A"},
		{"padded", good + "=="},
		{"in the other alphabet", strings.NewReplacer("-", "+", "_", "/").Replace(good) + "+"},
		{"a space in front", " " + good},
		{"a line end behind", good + "\n"},
		{"a line end within", head + "\r\n." + body + "." + signature},
		{"the scheme in front", "Bearer " + good},
		{"as JSON", must(jose.ParseSignedCompact(good, []jose.SignatureAlgorithm{"RS256"})).FullSerialize()},
		{"too long", payload(`{"sub":"u-17","x":"` + strings.Repeat("x", maxToken) + `"}`)},
		{"much too long", strings.Repeat("A", 1<<20)},
		{"the claims of another token", head + "." + rawURL.EncodeToString([]byte(`{"sub":"u-18"}`)) + "." + signature},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want(t, j, c.token, "")
		})
	}
	for _, c := range []struct{ name, token string }{
		{"an embedded key, which is not used", header(`{"alg":"RS256","jwk":` + embedded + `}`)},
		{"addresses of keys, which nobody asks", header(`{"alg":"RS256","jku":"https://attacker.example/keys","x5u":"https://attacker.example/cert"}`)},
		{"a type", header(`{"alg":"RS256","typ":"at+jwt"}`)},
		{"another content type", header(`{"alg":"RS256","cty":"json"}`)},
		{"a key's name, where the key has none", header(`{"alg":"RS256","kid":"2026-11"}`)},
		{"no expiry", payload(`{"sub":"u-17"}`)},
		{"a far expiry", payload(`{"sub":"u-17","exp":1e300}`)},
		{"an expiry with a fraction", payload(fmt.Sprintf(`{"sub":"u-17","exp":%d.5}`, testNow.Unix()))},
		{"beginning now", payload(fmt.Sprintf(`{"sub":"u-17","nbf":%d}`, testNow.Unix()))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want(t, j, c.token, "u-17")
		})
	}
}

// TestJWTHasOneSpelling: the last letter of each part holds bits that decoding drops.
func TestJWTHasOneSpelling(t *testing.T) {
	t.Parallel()
	j := newJWT(t, JWTConfig{Keys: publicPEM(t, rsaKey().Public())})
	good := signedByHand(rsaKey(), `{"alg":"RS256" }`, `{"sub":"u-17" }`)
	spellings := 0
	for _, part := range strings.Split(good, ".") {
		end := strings.Index(good, part) + len(part)
		for _, letter := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			text := good[:end-1] + string(letter) + good[end:]
			if _, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{"RS256"}); err == nil {
				spellings++
			}
			if _, ok := j.Value(text, testNow); ok != (text == good) {
				t.Errorf("%s: believed %v", text, ok)
			}
		}
	}
	if spellings < 4 {
		t.Errorf("%d spellings are good for the library; the test is of no use", spellings)
	}
}
