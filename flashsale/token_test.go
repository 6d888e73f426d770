package flashsale

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
	"time"
)

func testKeys(t *testing.T, ids ...string) *TokenKeys {
	t.Helper()
	keys, err := NewTokenKeys(makeKeys(ids...)...)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func makeKeys(ids ...string) (keys []TokenKey) {
	for _, id := range ids {
		keys = append(keys, TokenKey{ID: id, Secret: []byte(strings.Repeat(id, 32))})
	}
	return keys
}

func someScope() TokenScope {
	return TokenScope{Key: Key{"eleven", "phone-1"}, User: "u-1", Device: "d-1"}
}

func TestTokenRoundTrip(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, "a")
	expires := time.UnixMilli(1_790_000_000_123)
	text, err := keys.Issue(bytes.NewReader([]byte("0123456789abcdef")), someScope(), expires)
	if err != nil {
		t.Fatal(err)
	}
	token, err := keys.Verify(text, someScope())
	if err != nil || token.RID != "MDEyMzQ1Njc4OWFiY2RlZg" || !token.ExpiresAt.Equal(expires) {
		t.Errorf("%+v, %v", token, err)
	}
	if err := CheckID("rid", token.RID); err != nil {
		t.Error(err)
	}
	if strings.Contains(text, "u-1") || strings.Contains(text, "d-1") {
		t.Errorf("the token shows whose it is: %s", text)
	}
}

// TestTokenIsForOneScope: with any part of the scope changed, or a byte moved from one part to the next, it is not valid.
func TestTokenIsForOneScope(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, "a")
	text, err := keys.Issue(rand.Reader, someScope(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*TokenScope){
		"sale":     func(s *TokenScope) { s.Key.Sale = "twelve" },
		"sku":      func(s *TokenScope) { s.Key.SKU = "phone-2" },
		"user":     func(s *TokenScope) { s.User = "u-2" },
		"device":   func(s *TokenScope) { s.Device = "" },
		"boundary": func(s *TokenScope) { s.User, s.Key.Sale = "u-1e", "leven" },
	} {
		scope := someScope()
		change(&scope)
		if _, err := keys.Verify(text, scope); CodeOf(err) != CodeInvalidToken {
			t.Errorf("another %s: %v", what, err)
		}
	}
}

// TestTokenForged: no byte of it can be changed, left out or added.
func TestTokenForged(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, "a")
	text, err := keys.Issue(rand.Reader, someScope(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	forged := []string{"", ".", "..", "a..", text + "A", text + "=", text[1:], text[:len(text)-1], text + "." + text, strings.ToUpper(text), "b" + text[1:], strings.Repeat("x", 1<<16)}
	for i := range text {
		for _, c := range []byte{'A', 'B', '.', 0, 0xff, '\n'} {
			if text[i] != c {
				forged = append(forged, text[:i]+string([]byte{c})+text[i+1:])
			}
		}
	}
	for _, f := range forged {
		if _, err := keys.Verify(f, someScope()); CodeOf(err) != CodeInvalidToken {
			t.Fatalf("%q: %v", f, err)
		}
	}
}

func TestTokenRotation(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, "a")
	old, _ := keys.Issue(rand.Reader, someScope(), time.Now())
	if err := keys.Replace(makeKeys("b", "a")...); err != nil {
		t.Fatal(err)
	}
	fresh, _ := keys.Issue(rand.Reader, someScope(), time.Now())
	for _, text := range []string{old, fresh} {
		if _, err := keys.Verify(text, someScope()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if !strings.HasPrefix(fresh, "b.") {
		t.Errorf("the first key does not sign: %s", fresh)
	}
	if err := keys.Replace(makeKeys("b")...); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Verify(old, someScope()); CodeOf(err) != CodeInvalidToken {
		t.Errorf("a key that was taken away still verifies: %v", err)
	}
}

func TestTokenKeysAreChecked(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, "a")
	for what, bad := range map[string][]TokenKey{
		"none":  nil,
		"many":  makeKeys("a", "b", "c", "d", "e", "f", "g", "h", "i"),
		"short": {{ID: "a", Secret: make([]byte, 31)}},
		"no id": {{Secret: make([]byte, 32)}},
		"dot":   {{ID: "a.b", Secret: make([]byte, 32)}},
		"twice": makeKeys("a", "a"),
	} {
		if err := keys.Replace(bad...); CodeOf(err) != CodeInvalidArgument {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := keys.Issue(strings.NewReader("short"), someScope(), time.Now()); CodeOf(err) != CodeInternal {
		t.Errorf("without randomness: %v", err)
	}
}

// TestTokenSecretIsCopied: whoever wipes the secret that was given changes nothing.
func TestTokenSecretIsCopied(t *testing.T) {
	t.Parallel()
	secret := makeKeys("a")
	keys, err := NewTokenKeys(secret...)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := keys.Issue(rand.Reader, someScope(), time.Now())
	clear(secret[0].Secret)
	if _, err := keys.Verify(text, someScope()); err != nil {
		t.Error(err)
	}
}

func FuzzTokenVerify(f *testing.F) {
	keys, err := NewTokenKeys(makeKeys("a")...)
	if err != nil {
		f.Fatal(err)
	}
	good, _ := keys.Issue(rand.Reader, someScope(), time.Now())
	f.Add(good)
	f.Add("a.AAAA.AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := keys.Verify(text, someScope()); err == nil && text != good {
			t.Errorf("%q is taken for a token", text)
		}
	})
}

func TestDerivedIDs(t *testing.T) {
	t.Parallel()
	rid := DerivedRID(IntentKey("MDEyMzQ1Njc4OWFiY2RlZg", 2))
	if err := CheckID("rid", rid); err != nil {
		t.Error(err)
	}
	if rid != DerivedRID("MDEyMzQ1Njc4OWFiY2RlZg:2") || rid == DerivedRID(IntentKey("MDEyMzQ1Njc4OWFiY2RlZg", 1)) {
		t.Errorf("derived %s", rid)
	}
	if BodyHash(Key{"a", "bc"}, "u", 1) == BodyHash(Key{"ab", "c"}, "u", 1) || BodyHash(Key{"a", "b"}, "u", 1) == BodyHash(Key{"a", "b"}, "u", 2) {
		t.Error("two bodies have one hash")
	}
}
