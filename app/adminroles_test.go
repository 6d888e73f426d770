package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
	"github.com/headgate-io/headgate/resilience"
)

// tokenLine makes a token for somebody, and its line.
func tokenLine(t *testing.T, role, name string) (token, line string) {
	t.Helper()
	token, line, err := NewAdminToken(role, name)
	if err != nil {
		t.Fatal(err)
	}
	return token, line + "\n"
}

// writeTokens puts lines in the place of a file, as an editor does.
func writeTokens(t *testing.T, file string, lines ...string) {
	t.Helper()
	next := file + ".new"
	if err := os.WriteFile(next, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

// rolesOf is an admin listener with a file of tokens, and a handler of sales that tells who asks.
func rolesOf(t *testing.T, token, file string, log *slog.Logger) http.Handler {
	t.Helper()
	levels := resilience.NewLevels(resilience.LevelsConfig{})
	t.Cleanup(func() { _ = levels.Close() })
	return newAdminServer(adminConfig{
		health: new(Health), token: token, tokens: file, loopback: true, log: log, levels: levels,
		status:  func() Status { return Status{} },
		metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") }),
		sales: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			actor, ok := AdminActor(r)
			fmt.Fprintf(w, "%s %s %v", actor.Name, actor.Role, ok)
		}),
	}).Handler
}

func askAs(h http.Handler, method, path, body, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost:9090"
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestRolesOfTheListener: what each role may do on the listener, and that a higher one may do what a lower one may.
func TestRolesOfTheListener(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	viewer, a := tokenLine(t, "viewer", "wall")
	operator, b := tokenLine(t, "operator", "alice")
	admin, c := tokenLine(t, "admin", "bob")
	writeTokens(t, file, "# who may\n\n", a, b, "  "+c)
	h := rolesOf(t, "the-sole-token-of-all", file, slog.New(slog.DiscardHandler))
	const on = `{"on":true,"why":"a test"}`
	for _, c := range []struct {
		method, path, body              string
		nobody, viewer, operator, admin int
	}{
		{"GET", "/status", "", 401, 200, 200, 200},
		{"GET", "/metrics", "", 401, 200, 200, 200},
		{"GET", "/levels", "", 401, 200, 200, 200},
		{"PUT", "/levels/l3", on, 401, 403, 200, 200},
		{"GET", "/sales", "", 401, 200, 200, 200},
		{"POST", "/sales/eleven/open", "", 401, 200, 200, 200}, // the sale's own handler looks at the role
	} {
		for token, want := range map[string]int{"none": c.nobody, viewer: c.viewer, operator: c.operator, admin: c.admin, "the-sole-token-of-all": c.admin} {
			if got := askAs(h, c.method, c.path, c.body, token); got.Code != want {
				t.Errorf("%s %s: got %d %s, want %d", c.method, c.path, got.Code, got.Body, want)
			}
		}
	}
	for token, want := range map[string]string{viewer: "wall viewer true", operator: "alice operator true", admin: "bob admin true", "the-sole-token-of-all": "admin admin true"} {
		if got := askAs(h, "GET", "/sales/x", "", token).Body.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := askAs(h, "PUT", "/levels/l3", on, viewer).Body.String(); !strings.Contains(got, "needs the role operator, and this token has the role viewer") {
		t.Errorf("got %s", got)
	}
}

// TestRefusalsUnderSales: who is shut out of the sales is told so in a document like all others there, and of the rest in a word.
func TestRefusalsUnderSales(t *testing.T) {
	t.Parallel()
	h := rolesOf(t, "the-sole-token-of-all", "", slog.New(slog.DiscardHandler))
	const document, word = "application/problem+json", "application/json"
	for _, c := range []struct {
		path, origin, token string
		status              int
		kind, says          string
	}{
		{"/sales", "", "", 401, document, `"code":"unauthorized"`},
		{"/sales/eleven/open", "", "none", 401, document, `"code":"unauthorized"`},
		{"/sales/eleven/open", "https://evil.example", "the-sole-token-of-all", 403, document, `"code":"cross_origin"`},
		{"/sales", "null", "", 403, document, `"code":"cross_origin"`},
		{"/status", "", "none", 401, word, `{"status":"unauthorized"}`},
		{"/salesmen", "null", "", 403, word, `{"status":"forbidden origin"}`},
	} {
		r := httptest.NewRequest("POST", c.path, strings.NewReader(`{"reason":"a test"}`))
		r.Header.Set("Authorization", "Bearer "+c.token)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.path == "/status" {
			r.Method = "GET"
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.kind || !strings.Contains(w.Body.String(), c.says) || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %v %s", c.path, w.Code, w.Header(), w.Body)
		}
	}
}

// TestTokensAreRevoked: whose line is taken out is shut out with the next request, and whose line comes is let in.
func TestTokensAreRevoked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	ann, annLine := tokenLine(t, "viewer", "ann")
	bob, bobLine := tokenLine(t, "viewer", "bob")
	writeTokens(t, file, annLine)
	var log bytes.Buffer
	h := rolesOf(t, "the-sole-token-of-all", file, slog.New(slog.NewTextHandler(&log, nil)))
	are := func(what string, wantAnn, wantBob int) {
		t.Helper()
		if a, b := askAs(h, "GET", "/status", "", ann).Code, askAs(h, "GET", "/status", "", bob).Code; a != wantAnn || b != wantBob {
			t.Errorf("%s: ann %d, bob %d; want %d, %d", what, a, b, wantAnn, wantBob)
		}
		if sole := askAs(h, "GET", "/status", "", "the-sole-token-of-all").Code; sole != http.StatusOK {
			t.Errorf("%s: the token of the environment is answered %d", what, sole)
		}
	}
	are("ann alone", 200, 401)
	writeTokens(t, file, bobLine)
	are("bob in her place", 401, 200)
	writeTokens(t, file, annLine, bobLine)
	are("both", 200, 200)
	// The same length, in place, within what the clock of a file system can tell apart: hers becomes his.
	_, other := tokenLine(t, "viewer", "ann")
	if err := os.WriteFile(file, []byte(other+bobLine), 0o600); err != nil {
		t.Fatal(err)
	}
	are("another token for ann", 401, 200)
	writeTokens(t, file, "viewer ann\n", bobLine)
	are("a mistake in a line", 401, 200)
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	are("a file that anybody can write", 401, 401)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	are("no file", 401, 401)
	writeTokens(t, file, annLine, bobLine)
	are("it is back", 200, 200)
	for _, want := range []string{"line 1: it has 2 words", "others can write it", "no such file", "good again"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
	for _, secret := range []string{ann, bob, "the-sole-token-of-all"} {
		if sum := sha256.Sum256([]byte(secret)); strings.Contains(log.String(), secret) || strings.Contains(log.String(), hex.EncodeToString(sum[:])) {
			t.Error("the log has a token, or its hash")
		}
	}
}

// TestTokensAreReadOnce: a file that does not change is not read for each request.
func TestTokensAreReadOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	token, line := tokenLine(t, "viewer", "ann")
	writeTokens(t, file, line)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	a := newAdminTokens("", file, slog.New(slog.DiscardHandler))
	r := httptest.NewRequest(http.MethodGet, "/status", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	var read time.Time
	for i := range 3 {
		if actor, ok := a.who(r); !ok || actor != (saleadmin.Actor{Name: "ann", Role: saleadmin.Viewer}) {
			t.Fatalf("got %v, %v", actor, ok)
		}
		if i == 0 {
			read = a.readAt
		} else if !a.readAt.Equal(read) {
			t.Error("it was read again")
		}
	}
}

func TestParseTokens(t *testing.T) {
	t.Parallel()
	_, good := tokenLine(t, "admin", "ann.b_c@d+e-f")
	sum := strings.Fields(good)[2]
	for name, c := range map[string]struct {
		text  string
		good  int
		wants []string
	}{
		"none":           {"", 0, nil},
		"one":            {good, 1, nil},
		"Windows":        {strings.ReplaceAll(good, "\n", "\r\n"), 1, nil},
		"notes":          {"# a\n\n  # b\n" + good, 1, nil},
		"upper hex":      {"viewer a " + strings.ToUpper(sum), 1, nil},
		"a role":         {good + "root a " + sum, 1, []string{"line 2: the first word is no role"}},
		"a name":         {"viewer a/b " + sum, 0, []string{"line 1: a token's name has"}},
		"a long name":    {"viewer " + strings.Repeat("a", 65) + " " + sum, 0, []string{"line 1: a token's name has"}},
		"the sole name":  {"viewer admin " + sum, 0, []string{"is that of the token in HEADGATE_ADMIN_TOKEN"}},
		"the token":      {"viewer a hunter2", 0, []string{"not the SHA-256"}},
		"a short hash":   {"viewer a " + sum[2:], 0, []string{"not the SHA-256"}},
		"two words":      {"viewer hunter2", 0, []string{"it has 2 words"}},
		"four words":     {"viewer a b hunter2", 0, []string{"it has 4 words"}},
		"several":        {"x\n" + good + "viewer a hunter2\n", 1, []string{"line 1:", "line 3:"}},
		"a long line":    {good + strings.Repeat("x", 100<<10), 1, []string{"too long"}},
		"too many":       {strings.Repeat(good, 1001), 1000, []string{"line 1001: there are more than 1000 tokens"}},
		"no line at end": {strings.TrimSpace(good), 1, nil},
	} {
		tokens, err := parseTokens([]byte(c.text))
		if len(tokens) != c.good || (err == nil) != (c.wants == nil) {
			t.Errorf("%s: got %d tokens, %v", name, len(tokens), err)
			continue
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
}

// FuzzParseTokens: whatever lies in the file, what is taken of it are tokens with a role and a name.
func FuzzParseTokens(f *testing.F) {
	f.Add([]byte("viewer a " + strings.Repeat("0", 64)))
	f.Add([]byte("# x\nroot b\n\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, _ := parseTokens(text)
		for _, one := range tokens {
			if one.actor.Role < saleadmin.Viewer || one.actor.Role > saleadmin.Admin || checkTokenName(one.actor.Name) != nil {
				t.Fatalf("%q: %+v", text, one)
			}
		}
	})
}

// TestServeTokens: beyond loopback a file of tokens is enough, and one that cannot be used stops the start.
func TestServeTokens(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	token, line := tokenLine(t, "viewer", "ann")
	writeTokens(t, file, line)
	r := start(t, ServeConfig{Policy: writePolicy(t, twoAnHour), Upstreams: []string{"http://127.0.0.1:9"}, Admin: "127.0.0.1:0", AdminToken: "the-sole-token-of-all", AdminTokens: file})
	for auth, want := range map[string]int{"Bearer " + token: 200, "Bearer the-sole-token-of-all": 200, "Bearer none": 401} {
		if status, body := get(t, r.admin+"/status", "Authorization", auth); status != want {
			t.Errorf("%d %s, want %d", status, body, want)
		}
	}
	if status, body := get(t, r.admin+"/sales", "Authorization", "Bearer "+token); status != http.StatusNotFound {
		t.Errorf("without a sale /sales is answered %d %s", status, body)
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	writeTokens(t, file, "viewer ann hunter2\n")
	err := Serve(t.Context(), ServeConfig{Policy: writePolicy(t, twoAnHour), Upstreams: []string{"http://127.0.0.1:9"}, Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", AdminTokens: file})
	if err == nil || !strings.Contains(err.Error(), "line 1: the third word is not the SHA-256") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	l, err := listenAdmin(t.Context(), "0.0.0.0:0", "", file)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if _, err := listenAdmin(t.Context(), "0.0.0.0:0", "", ""); err == nil {
		t.Error("a listener beyond loopback needs no token")
	}
}

// TestLocalAdminToken is what writeToken has left, by the address that a client has.
func TestLocalAdminToken(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if token, err := LocalAdminToken("127.0.0.1:9090"); token != "" || err != nil {
		t.Errorf("got %q, %v", token, err)
	}
	token, file, err := writeToken("", addr(9090))
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"127.0.0.1:9090": token, "localhost:9090": token, "LOCALHOST:9090": token, "127.0.0.1:9091": "", "192.0.2.1:9090": "", "gate.example:9090": "",
		"[::1]:9090": "", "127.0.0.1:../9090": "",
	} {
		if got, err := LocalAdminToken(address); got != want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", address, got, err, want)
		}
	}
	if err := os.Chmod(filepath.Dir(file.path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := LocalAdminToken("127.0.0.1:9090"); err == nil {
		t.Error("a folder that others can use is trusted")
	}
}

// TestTwoLinesOfOneHeader: a request that says twice who sends it, or from where it comes, is not judged by one of the lines.
func TestTwoLinesOfOneHeader(t *testing.T) {
	t.Parallel()
	const token = "the-sole-token-of-all"
	h := rolesOf(t, token, "", slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		header http.Header
		want   int
	}{
		{http.Header{"Authorization": {"Bearer " + token}}, 200},
		{http.Header{"Authorization": {"Bearer " + token, "Bearer " + token}}, 401},
		{http.Header{"Authorization": {"Bearer " + token, "Bearer none"}}, 401},
		{http.Header{"Authorization": {"Bearer none", "Bearer " + token}}, 401},
		{http.Header{"Authorization": {"Bearer " + token}, "Sec-Fetch-Site": {"same-origin", "cross-site"}}, 403},
		{http.Header{"Authorization": {"Bearer " + token}, "Sec-Fetch-Site": {"", "cross-site"}}, 403},
		{http.Header{"Authorization": {"Bearer " + token}, "Origin": {"http://localhost:9090", "https://evil.example"}}, 403},
	} {
		r := httptest.NewRequest("GET", "/sales", nil)
		r.Host, r.Header = "localhost:9090", c.header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%v: got %d, want %d", c.header, w.Code, c.want)
		}
	}
}
