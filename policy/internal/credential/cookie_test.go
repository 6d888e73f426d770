package credential

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
)

const (
	keyA = "0123456789abcdef"
	keyB = "an-older-key-that-still-verifies"
	keyC = "a-key-of-somebody-else-altogether"
)

func cookieKeys(t testing.TB, lines ...string) *CookieKeys {
	t.Helper()
	k, err := NewCookieKeys([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// signed makes a cookie as the documentation describes it.
func signed(key, name, value string) string {
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%s=%s", name, value)
	return value + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestCookieVerify(t *testing.T) {
	t.Parallel()
	k := cookieKeys(t, "# signs", keyA, "", "# verifies", keyB)
	good := signed(keyA, "did", "d-17")
	last := good[:len(good)-1]
	padded := good + "="
	urlSafe, urlValue := "", "" // one whose signature has both letters that the alphabets of base64 differ in
	for i := 0; !strings.Contains(urlSafe, "-") || !strings.Contains(urlSafe, "_"); i++ {
		urlValue = fmt.Sprintf("d%d", i)
		urlSafe = signed(keyA, "did", urlValue)
	}
	long := strings.Repeat("v", maxCookieValue)
	for _, c := range []struct{ name, cookie, text, want string }{
		{"the first key", "did", good, "d-17"},
		{"a later key", "did", signed(keyB, "did", "d-17"), "d-17"},
		{"dots in the value", "did", signed(keyA, "did", "a.b..c."), "a.b..c."},
		{"equal signs in the value", "did", signed(keyA, "did", "a=b="), "a=b="},
		{"any bytes", "did", signed(keyA, "did", "\x00\xff\n"), "\x00\xff\n"},
		{"as long as may be", "did", signed(keyA, "did", long), long},
		{"the alphabet for addresses", "did", urlSafe, urlValue},

		{"another key", "did", signed(keyC, "did", "d-17"), ""},
		{"another name", "sid", good, ""},
		{"a name in another case", "DID", good, ""},
		{"no name", "", signed(keyA, "", "d-17"), ""},
		{"the border between name and value moved", "did=x", signed(keyA, "did", "x=d-17"), ""},
		{"another value", "did", "d-18" + good[4:], ""},
		{"a value in another case", "did", "D-17" + good[4:], ""},
		{"a longer value", "did", "x" + good, ""},
		{"an empty value", "did", signed(keyA, "did", ""), ""},
		{"too long a value", "did", signed(keyA, "did", long+"v"), ""},
		{"no text", "did", "", ""},
		{"a dot", "did", ".", ""},
		{"a value alone", "did", "d-17", ""},
		{"a value and a dot", "did", "d-17.", ""},
		{"a signature alone", "did", good[5:], ""},
		{"no dot", "did", strings.Replace(good, ".", "", 1), ""},
		{"another separator", "did", strings.Replace(good, ".", ":", 1), ""},
		{"a signature cut off", "did", last, ""},
		{"a signature cut off in the middle", "did", good[:20], ""},
		{"a longer signature", "did", good + "A", ""},
		{"padded", "did", padded, ""},
		{"padded, escaped", "did", good + "%3D", ""},
		{"the other alphabet", "did", strings.NewReplacer("-", "+", "_", "/").Replace(urlSafe), ""},
		{"a space behind", "did", good + " ", ""},
		{"a line end within", "did", good[:len(good)-4] + "\n" + good[len(good)-4:], ""},
		{"quotes", "did", `"` + good + `"`, ""},
		{"signed twice is another value", "did", signed(keyA, "did", good), good},
	} {
		value, ok := k.Verify(c.cookie, c.text)
		if value != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.name, value, ok, c.want)
		}
	}
}

// TestCookieSignatureHasOneSpelling: the last letter of a signature holds four bits that count and two that do not.
func TestCookieSignatureHasOneSpelling(t *testing.T) {
	t.Parallel()
	k := cookieKeys(t, keyA)
	good := k.Sign("did", "d-17")
	signature, err := base64.RawURLEncoding.DecodeString(good[5:])
	if err != nil {
		t.Fatal(err)
	}
	spellings := 0
	for _, letter := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		text := good[:len(good)-1] + string(letter)
		if other, err := base64.RawURLEncoding.DecodeString(text[5:]); err == nil && bytes.Equal(other, signature) {
			spellings++
		}
		if _, ok := k.Verify("did", text); ok != (text == good) {
			t.Errorf("%s: verified %v", text, ok)
		}
	}
	if spellings != 4 {
		t.Errorf("%d spellings decode to the signature; the test is of no use", spellings)
	}
}

func TestCookieSignatureEveryBit(t *testing.T) {
	t.Parallel()
	k := cookieKeys(t, keyA)
	good := k.Sign("did", "d-17")
	for i := range len(good) * 8 {
		text := []byte(good)
		text[i/8] ^= 1 << (i % 8)
		if value, ok := k.Verify("did", string(text)); ok {
			t.Errorf("bit %d of byte %d changed: %q is verified", i%8, i/8, value)
		}
	}
}

func TestCookieSignsWithTheFirstKey(t *testing.T) {
	t.Parallel()
	rotated := cookieKeys(t, keyA, keyB)
	text := rotated.Sign("did", "d-17")
	if want := signed(keyA, "did", "d-17"); text != want {
		t.Errorf("signed %s, want %s", text, want)
	}
	if value, ok := rotated.Verify("did", cookieKeys(t, keyB).Sign("did", "d-17")); !ok || value != "d-17" {
		t.Errorf("the older key's cookie is %q, %v", value, ok)
	}
	if _, ok := cookieKeys(t, keyB).Verify("did", text); ok {
		t.Error("the new key's cookie is verified by the older key")
	}
}

func TestNewCookieKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, want string }{
		{"one", keyA, ""},
		{"line ends of all kinds", "\r\n# keys\r\n\t " + keyA + " \r\n\n" + keyB + "\n", ""},
		{"16", strings.Join(numberedKeys(16), "\n"), ""},
		{"long", strings.Repeat("k", maxCookieKey), ""},
		{"empty", "", "has no key; write one of at least 16 characters on a line, such as 32 random bytes in base64"},
		{"comments alone", "# one\n\n  # two\n", "has no key; write one of at least 16 characters on a line, such as 32 random bytes in base64"},
		{"short", "# key\n" + keyA[:15] + "\n", "line 2 has a key of 15 characters; it needs at least 16, such as 32 random bytes in base64"},
		{"too long", strings.Repeat("k", maxCookieKey+1), "line 1 has a key of 1025 characters; at most 1024 are read"},
		{"17", strings.Join(numberedKeys(17), "\n"), "line 17 has one key more than 16; remove those whose cookies are gone"},
		{"twice", keyA + "\n" + keyB + "\n" + keyA, "line 3 has a key that is there already; remove one of the two lines"},
		{"binary", keyA + "\n" + keyB + "\x00\x01", "line 2 has characters that are not printable ASCII; write the key in base64 or in hexadecimal digits"},
		{"not UTF-8", keyA + "\xff", "line 1 has characters that are not printable ASCII; write the key in base64 or in hexadecimal digits"},
		{"a byte order mark", "\ufeff" + keyA, "line 1 has characters that are not printable ASCII; write the key in base64 or in hexadecimal digits"},
	} {
		_, err := NewCookieKeys([]byte(c.file))
		if got := text(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func numberedKeys(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("%s-%d", keyA, i))
	}
	return lines
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestCookieKeysAreTheirOwn: who read the file may use its bytes again.
func TestCookieKeysAreTheirOwn(t *testing.T) {
	t.Parallel()
	file := []byte(keyA)
	k, err := NewCookieKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(file)
	if _, ok := k.Verify("did", signed(keyA, "did", "d-17")); !ok {
		t.Error("the key is gone with the file")
	}
}

func FuzzCookieVerify(f *testing.F) {
	k := cookieKeys(f, keyA, keyB)
	f.Add("did", k.Sign("did", "d-17"))
	f.Add("did", signed(keyB, "did", "a.b"))
	f.Add("did", signed(keyC, "did", "d-17"))
	f.Add("", ".")
	f.Fuzz(func(t *testing.T, name, text string) {
		value, ok := k.Verify(name, text)
		if ok && text != signed(keyA, name, value) && text != signed(keyB, name, value) {
			t.Fatalf("%q of %q is verified as %q", text, name, value)
		}
		for _, key := range []string{keyA, keyB} {
			got, ok := k.Verify(name, signed(key, name, text))
			good := text != "" && len(text) <= maxCookieValue && name != "" && !strings.Contains(name, "=")
			if ok != good || ok && got != text {
				t.Fatalf("%q of %q, signed, is %q, %v", text, name, got, ok)
			}
		}
	})
}

func TestCookieVerifyConcurrently(t *testing.T) {
	t.Parallel()
	k := cookieKeys(t, keyA, keyB)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 200 {
				value := fmt.Sprintf("d-%d-%d", worker, i)
				if got, ok := k.Verify("did", signed(keyB, "did", value)); !ok || got != value {
					t.Errorf("%s is %q, %v", value, got, ok)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkCookieVerify(b *testing.B) {
	k := cookieKeys(b, keyA)
	text := k.Sign("did", "d-17")
	b.ReportAllocs()
	for b.Loop() {
		k.Verify("did", text)
	}
}
