package flashsale

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
)

func TestSealed(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, "a")
	for _, secret := range []string{"", "u-1", "\x00\xff", "somebody-who-is-not-to-be-known", strings.Repeat("s", 1024)} {
		text, err := keys.Seal(rand.Reader, "a use", []byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		if len(secret) > 8 && strings.Contains(text, secret) { // a few characters are in many texts by chance
			t.Errorf("the text shows what it hides: %s", text)
		}
		if got, err := keys.Open("a use", text); err != nil || string(got) != secret {
			t.Errorf("%d bytes come back as %d: %v", len(secret), len(got), err)
		}
		if _, err := keys.Open("another use", text); CodeOf(err) != CodeInvalidToken {
			t.Errorf("it opens for another use: %v", err)
		}
	}
	if _, err := keys.Seal(rand.Reader, "", make([]byte, 1025)); CodeOf(err) != CodeInvalidArgument {
		t.Errorf("1025 bytes: %v", err)
	}
	if _, err := keys.Seal(bytes.NewReader(nil), "", nil); CodeOf(err) != CodeInternal {
		t.Errorf("without randomness: %v", err)
	}
}

// TestSealedForged: no byte of it can be changed, and an order token is none.
func TestSealedForged(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, "a")
	text, err := keys.Seal(rand.Reader, "use", []byte("u-1"))
	if err != nil {
		t.Fatal(err)
	}
	forged := []string{"", ".", "a.", "a.AAAA", text + "A", text + "=", text[1:], text[:len(text)-1], "b" + text[1:], "a." + strings.Repeat("A", 1<<16)}
	for i := range text {
		for _, c := range []byte{'A', 'B', '.', 0, '\n'} {
			if text[i] != c {
				forged = append(forged, text[:i]+string([]byte{c})+text[i+1:])
			}
		}
	}
	for _, f := range forged {
		if _, err := keys.Open("use", f); CodeOf(err) != CodeInvalidToken {
			t.Fatalf("%q: %v", f, err)
		}
	}
}

func TestSealedRotation(t *testing.T) {
	t.Parallel()
	keys := testKeys(t, "a")
	old, _ := keys.Seal(rand.Reader, "use", []byte("u"))
	if err := keys.Replace(makeKeys("b", "a")...); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Open("use", old); err != nil {
		t.Error(err)
	}
	if err := keys.Replace(makeKeys("b")...); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Open("use", old); CodeOf(err) != CodeInvalidToken {
		t.Errorf("a key that was taken away still opens: %v", err)
	}
}
