package credential

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestJWTBadTokensPushNoneOut floods with tokens of all bad kinds, also of some that are signed.
func TestJWTBadTokensPushNoneOut(t *testing.T) {
	t.Parallel()
	j := newJWT(t, JWTConfig{Keys: secret, Algorithms: []string{"HS256"}, Issuer: "https://id.example"})
	sign := func(key []byte, claims string) string { return signedByHand(key, `{"alg":"HS256"}`, claims) }
	good := sign(secret, `{"iss":"https://id.example","sub":"u-17"}`)
	want(t, j, good, "u-17")
	other := []byte(strings.ToUpper(string(secret)))
	for i := range cachedTokens / 4 {
		for _, bad := range []string{
			sign(other, fmt.Sprintf(`{"iss":"https://id.example","sub":"a-%d"}`, i)),
			sign(secret, fmt.Sprintf(`{"iss":"https://other.example","sub":"b-%d"}`, i)),
			sign(secret, fmt.Sprintf(`{"iss":"https://id.example","exp":1,"sub":"c-%d"}`, i)),
			sign(secret, fmt.Sprintf(`{"iss":"https://id.example","nbf":99999999999,"sub":"d-%d"}`, i)),
			sign(secret, fmt.Sprintf(`{"iss":"https://id.example","uid":"e-%d"}`, i)),
		} {
			if value, ok := j.Value(bad, testNow); ok {
				t.Fatalf("%s is worth %q", bad, value)
			}
		}
	}
	if n := j.cache.Len(); n != 1 {
		t.Errorf("%d tokens are remembered, want the good one", n)
	}
}

func TestJWTCacheIsBounded(t *testing.T) {
	t.Parallel()
	j := newJWT(t, JWTConfig{Keys: secret, Algorithms: []string{"HS256"}})
	for i := range cachedTokens + 500 {
		user := fmt.Sprintf("u-%d", i)
		if value, ok := j.Value(signedByHand(secret, `{"alg":"HS256"}`, `{"sub":"`+user+`"}`), testNow); !ok || value != user {
			t.Fatalf("%s is %q, %v", user, value, ok)
		}
	}
	if n := j.cache.Len(); n != cachedTokens {
		t.Errorf("%d tokens are remembered, want %d", n, cachedTokens)
	}
}

func TestJWTConcurrently(t *testing.T) {
	t.Parallel()
	j := newJWT(t, JWTConfig{Keys: secret, Algorithms: []string{"HS256"}})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 300 {
				user := fmt.Sprintf("u-%d", (i+worker)%50)
				signed := signedByHand(secret, `{"alg":"HS256"}`, fmt.Sprintf(`{"sub":%q,"exp":%d}`, user, testNow.Unix()+10))
				at := testNow.Add(time.Duration(i%12) * time.Second)
				if value, ok := j.Value(signed, at); ok != (i%12 < 10) || ok && value != user {
					t.Errorf("%s after %ds: %q, %v", user, i%12, value, ok)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkJWT(b *testing.B) {
	for _, c := range []struct {
		algorithm    string
		sign, public any
	}{
		{"RS256", rsaKey(), rsaKey().Public()},
		{"ES256", ecKey(), ecKey().Public()},
		{"EdDSA", edKey, edKey.Public()},
		{"HS256", secret, secret},
	} {
		file, isSecret := c.public.([]byte)
		if !isSecret {
			file = publicPEM(b, c.public)
		}
		claims := fmt.Sprintf(`{"iss":"https://id.example","sub":"u-17","aud":["shop"],"exp":%d,"scope":%q}`, testNow.Unix()+60, strings.Repeat("x", 300))
		signed := token(b, c.algorithm, c.sign, nil, claims)
		j := newJWT(b, JWTConfig{Keys: file, Algorithms: []string{c.algorithm}})
		b.Run(c.algorithm+"/known", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := j.Value(signed, testNow); !ok {
					b.Fatal("missing")
				}
			}
		})
		b.Run(c.algorithm+"/new", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				j.cache.Purge()
				if _, ok := j.Value(signed, testNow); !ok {
					b.Fatal("missing")
				}
			}
		})
	}
}
