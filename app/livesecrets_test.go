package app

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/simpay"
)

const otherKeys = "k2:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=" // fedcba9876543210, twice

func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLiveSecret: a file is taken up when it has rested, and one that is no good changes nothing and is complained of once a minute.
func TestLiveSecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	var log bytes.Buffer
	var taken []string
	l := newLiveSecret("NAME_FILE", file, "one", slog.New(slog.NewTextHandler(&log, nil)), func(text string) ([]any, error) {
		if strings.HasPrefix(text, "bad") {
			return nil, errors.New("it is bad")
		}
		taken = append(taken, text)
		return []any{"is", "new"}, nil
	})
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		write       string // "-" removes it, "" leaves it
		taken       string
		trouble     string
		errors, all int // lines of the log, so far
	}{
		{"one\n", "", "", 0, 0},
		{"tw", "", "", 0, 0},     // it is being written
		{"two\n", "", "", 0, 0},  // and has just been
		{"", "two", "", 0, 1},    // it rests
		{"", "two", "", 0, 1},    // it is in force
		{"bad", "two", "", 0, 1}, // it has just come
		{"", "two", "it is bad", 1, 2},
		{"", "two", "it is bad", 1, 2},
		{"two", "two", "it is bad", 1, 2},
		{"", "two", "", 1, 3}, // as it was
		{"-", "two", "", 1, 3},
		{"", "two", "no such file or directory", 2, 4},
		{" \n", "two", "it is empty", 3, 5},
		{"three", "two", "it is empty", 3, 5},
		{"", "two three", "", 3, 6},
	} {
		switch c.write {
		case "-":
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		case "":
		default:
			rewrite(t, file, c.write)
		}
		now = now.Add(time.Second)
		l.look(now)
		if got := strings.Join(taken, " "); got != c.taken || l.status().Trouble != c.trouble || strings.Count(log.String(), "level=ERROR") != c.errors || strings.Count(log.String(), "\n") != c.all {
			t.Fatalf("after %q: took %q, trouble %q, want %+v; logged\n%s", c.write, got, l.status().Trouble, c, log.String())
		}
	}
	rewrite(t, file, "bad")
	for range 121 {
		now = now.Add(time.Second)
		l.look(now)
	}
	if n := strings.Count(log.String(), "it is bad"); n != 3 { // one from before, one at once, one a minute later
		t.Errorf("complained %d times", n)
	}
}

// TestRepetitive: what nobody has drawn at random.
// TestLiveSecretIsARegularFile: nobody waits for a pipe to be written to, be it there from the beginning or later.
func TestLiveSecretIsARegularFile(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "keys")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l := newLiveSecret("NAME_FILE", pipe, "one", slog.New(slog.NewTextHandler(&log, nil)), func(string) ([]any, error) { return nil, errors.New("is not asked") })
	l.run(t.Context())
	if !strings.Contains(log.String(), "read once") {
		t.Errorf("%q", log.String())
	}
	now := time.Now()
	l.look(now)
	l.look(now.Add(time.Second))
	if l.status().Trouble != errNotRegular.Error() {
		t.Errorf("%+v", l.status())
	}
}

func TestRepetitive(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, strings.Repeat("a", 64): true, strings.Repeat("abcd", 16): true, strings.Repeat("\x00", 32): true,
		strings.Repeat("abcde", 7): false, "0123456789abcdef0123456789abcdef": false,
	} {
		if Repetitive(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

// TestKeysRotateLive: tokens of a new key are issued without a restart, those of the old one hold until it is taken away, and a bad file keeps what was in force.
func TestKeysRotateLive(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	rewrite(t, file, saleKeys)
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:", Keys: saleKeys, KeysFile: file})
	s.sell(10)
	defer s.close()
	signs := func(key string) func(*reply) bool {
		return func(r *reply) bool { return strings.HasPrefix(r.str("token"), key+".") }
	}
	users := 0
	issue := func() *reply { // three tries an hour are what the policy gives a user
		users++
		return s.as("user"+string(rune('a'+users%26))+strings.Repeat("x", users/26), "POST", "/spring/skus/mug/token", "")
	}
	old := s.token("ann")
	if !strings.HasPrefix(old, "k1.") {
		t.Fatal(old)
	}
	rewrite(t, file, otherKeys+","+saleKeys)
	s.until("a token of the new key", issue, signs("k2"))
	s.reserve("ann", old)
	rewrite(t, file, otherKeys+",hidden")
	trouble := s.until("the complaint", func() *reply { return s.send("GET", s.admin+"/status", "", "Authorization", "Bearer "+saleToken) }, func(r *reply) bool {
		return strings.Contains(r.text, `"trouble": "key 2 is not ID:BASE64`)
	})
	if strings.Contains(trouble.text, "hidden") || !signs("k2")(issue()) {
		t.Errorf("%s", trouble.text)
	}
	stale := s.token("bob")
	rewrite(t, file, saleKeys)
	s.until("a token of the old key", issue, signs("k1"))
	if r := s.as("bob", "POST", "/spring/skus/mug/reservations", `{"token":"`+stale+`","quantity":1}`); r.status != 403 || r.str("code") != "invalid_token" {
		t.Errorf("a token of a key that was taken away: %d %s", r.status, r.text)
	}
}

// TestPaySecretsRotateLive, at the service and at the sale, while shoppers pay.
func TestPaySecretsRotateLive(t *testing.T) {
	t.Parallel()
	const fresh = "another secret that is just as long"
	ours, theirs := filepath.Join(t.TempDir(), "ours"), filepath.Join(t.TempDir(), "theirs")
	rewrite(t, ours, paySecret)
	rewrite(t, theirs, paySecret)
	bank := startSimpay(t, SimpayConfig{Secret: paySecret, SecretFile: theirs, Behaviour: simpay.Behaviour{Capture: 1}})
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:", Pay: bank.api, PaySecretFile: ours})
	defer bank.close(t)
	defer s.close()
	s.sell(10)
	pays := func(user string) {
		t.Helper()
		path := s.reserve(user, s.token(user))
		s.until("paying", func() *reply { return s.as(user, "POST", path+"/pay", "") }, status(200))
	}
	pays("ann")
	rewrite(t, theirs, fresh)
	bank.log.await(t, "was taken up")
	bob := s.reserve("bob", s.token("bob"))
	if r := s.as("bob", "POST", bob+"/pay", ""); r.status != 503 {
		t.Errorf("the service has another secret: %d %s", r.status, r.text)
	}
	rewrite(t, ours, fresh+"\n"+paySecret)
	pays("carl")
	rewrite(t, ours, "short")
	s.until("the complaint", func() *reply { return s.send("GET", s.admin+"/status", "", "Authorization", "Bearer "+saleToken) }, func(r *reply) bool {
		return strings.Contains(r.text, "secret 1 for the payment service has 5 bytes")
	})
	pays("dora")
}
