package credential

import (
	"fmt"
	"testing"
	"time"
)

func TestJWTClaims(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ claim, claims, want string }{
		{"sub", `{"sub":"u-17"}`, "u-17"},
		{"sub", `{"sub":"李雷 \u0001"}`, "李雷 \x01"},
		{"uid", `{"uid":17}`, "17"},
		{"uid", `{"uid":-17}`, "-17"},
		{"uid", `{"uid":9007199254740993}`, "9007199254740993"},
		{"uid", `{"uid":123456789012345678901234567890}`, "123456789012345678901234567890"},
		{"user.id", `{"user":{"id":"u-17"}}`, "u-17"},
		{"user.id", `{"user":{"id":"u-17"},"user.id":"u-18"}`, "u-18"},
		{"a.b.c", `{"a":{"b":{"c":7}}}`, "7"},
		{"https://shop.example/user_id", `{"https://shop.example/user_id":"u-17"}`, "u-17"},
		{"user.id", `{"user":"u-17"}`, ""},
		{"user.id", `{"user":[{"id":"u-17"}]}`, ""},
		{"user.id", `{"user":{}}`, ""},
		{"user.id", `{"id":"u-17"}`, ""},
		{"user..id", `{"user":{"id":"u-17"}}`, ""},
		{".", `{"user":{"id":"u-17"}}`, ""},
		{"sub", `{"SUB":"u-17"}`, ""},
	} {
		j := newJWT(t, JWTConfig{Keys: secret, Algorithms: []string{"HS256"}, Claim: c.claim})
		t.Run(c.claim+" of "+c.claims, func(t *testing.T) {
			t.Parallel()
			want(t, j, signedByHand(secret, `{"alg":"HS256"}`, c.claims), c.want)
		})
	}
}

func TestJWTIssuerAndAudience(t *testing.T) {
	t.Parallel()
	const issuer, audience = "https://id.example", "shop"
	for _, c := range []struct {
		issuer, audience, claims string
		want                     bool
	}{
		{"", "", `"iss":"x","aud":["y"]`, true},
		{"", "", `"iss":1,"aud":{}`, true},
		{issuer, "", `"iss":"https://id.example"`, true},
		{issuer, "", `"iss":"https://id.example/"`, false},
		{issuer, "", `"iss":"https://ID.example"`, false},
		{issuer, "", `"iss":["https://id.example"]`, false},
		{issuer, "", `"iss":null`, false},
		{issuer, "", `"Iss":"https://id.example"`, false},
		{issuer, "", `"x":1`, false},
		{"", audience, `"aud":"shop"`, true},
		{"", audience, `"aud":["bank","shop"]`, true},
		{"", audience, `"aud":["bank",{},null,1,"shop"]`, true},
		{"", audience, `"aud":"shops"`, false},
		{"", audience, `"aud":["bank"]`, false},
		{"", audience, `"aud":[["shop"]]`, false},
		{"", audience, `"aud":{"shop":true}`, false},
		{"", audience, `"aud":[]`, false},
		{"", audience, `"aud":null`, false},
		{"", audience, `"x":1`, false},
		{issuer, audience, `"iss":"https://id.example","aud":"shop"`, true},
		{issuer, audience, `"iss":"https://id.example","aud":"bank"`, false},
		{issuer, audience, `"iss":"https://other.example","aud":"shop"`, false},
	} {
		j := newJWT(t, JWTConfig{Keys: secret, Algorithms: []string{"HS256"}, Issuer: c.issuer, Audience: c.audience})
		signed := signedByHand(secret, `{"alg":"HS256"}`, `{"sub":"u-17",`+c.claims+`}`)
		if _, ok := j.Value(signed, testNow); ok != c.want {
			t.Errorf("issuer %q, audience %q, {%s}: believed %v, want %v", c.issuer, c.audience, c.claims, ok, c.want)
		}
	}
}

// TestJWTTimes judges one known token at several times, there and back.
func TestJWTTimes(t *testing.T) {
	t.Parallel()
	const nbf, exp = 1_800_000_000, 1_800_000_600
	signed := signedByHand(secret, `{"alg":"HS256"}`, fmt.Sprintf(`{"sub":"u-17","nbf":%d,"exp":%d}`, nbf, exp))
	for _, leeway := range []time.Duration{0, 30 * time.Second} {
		j := newJWT(t, JWTConfig{Keys: secret, Algorithms: []string{"HS256"}, Leeway: leeway})
		begin, end := time.Unix(nbf, 0).Add(-leeway), time.Unix(exp, 0).Add(leeway)
		for i, c := range []struct {
			at   time.Time
			want bool
		}{
			{time.Time{}, false},
			{begin.Add(-time.Microsecond), false},
			{begin, true},
			{begin.Add(-time.Microsecond), false},
			{begin.Add(5 * time.Minute), true},
			{end.Add(-time.Microsecond), true},
			{end, false},
			{end.Add(-time.Microsecond), true}, // the clock went back
			{end.Add(1000 * time.Hour), false},
		} {
			if _, ok := j.Value(signed, c.at); ok != c.want {
				t.Errorf("leeway %s, step %d, %s: believed %v, want %v", leeway, i, c.at, ok, c.want)
			}
		}
		if n := j.cache.Len(); n != 0 {
			t.Errorf("leeway %s: %d tokens are remembered though they have expired", leeway, n)
		}
	}
}
