package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/saleadmin"
	"github.com/headgate-io/headgate/flashsale/saletest/salerig"
)

// saleListener is an admin listener of a real engine.
type saleListener struct {
	*salerig.Rig
	url string
}

// saleToken is the token of each role.
func saleToken(role saleadmin.Role) string { return "a-token-of-the-" + role.String() }

func newSaleListener(t *testing.T) *saleListener {
	t.Helper()
	l := &saleListener{Rig: salerig.New(t, salerig.Config{})}
	_, err := l.Engine.WriteRefusalsOnce(t.Context()) // as it does when it begins to run
	l.Must(err)
	h, err := saleadmin.New(saleadmin.Config{Sales: l.Engine, Now: l.Clock.Now, Actor: func(r *http.Request) (saleadmin.Actor, bool) {
		for role := saleadmin.Viewer; role <= saleadmin.Admin; role++ {
			if r.Header.Get("Authorization") == "Bearer "+saleToken(role) {
				return saleadmin.Actor{Name: "alice", Role: role}, true
			}
		}
		return saleadmin.Actor{}, false
	}})
	l.Must(err)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	l.url = srv.URL
	return l
}

// reserve asks for a unit, and has it decided if it is taken.
func (l *saleListener) reserve(sku, user string) string {
	l.Helper()
	key := flashsale.Key{Sale: "spring", SKU: sku}
	rid, refused := l.Ask(key, user)
	if refused == "" {
		l.Clock.Pass(time.Second)
		l.Consume(key)
	}
	return rid
}

// TestSaleDrop: what was created by mistake goes, and can be created again.
func TestSaleDrop(t *testing.T) {
	t.Parallel()
	l := newSaleListener(t)
	run := func(name string, role saleadmin.Role, args ...string) {
		t.Helper()
		got := runBinary(t, []string{"HEADGATE_ADMIN_URL=" + l.url, "HEADGATE_ADMIN_TOKEN=" + saleToken(role)}, append([]string{"sale"}, args...)...)
		if name != "" {
			golden(t, "sale-"+name, strings.ReplaceAll(got.String(), l.url, "http://127.0.0.1:9090"))
		}
	}
	drop := []string{"drop", "spring", "--id", "d1", "--reason", "a typo"}
	run("", saleadmin.Admin, "create", "spring.yaml", "--reason", "a typo")
	run("drop-operator", saleadmin.Operator, drop...)
	run("drop", saleadmin.Admin, drop...)
	run("drop-json", saleadmin.Admin, append(drop, "--json")...)
	run("drop-unknown", saleadmin.Admin, "drop", "spring", "--id", "d2", "--reason", "again")
	run("list-none", saleadmin.Viewer, "list")
	run("create", saleadmin.Admin, "create", "spring.yaml", "--reason", "now right")
}

// TestSale walks through a sale with the commands, and holds all that they print to reviewed files.
func TestSale(t *testing.T) {
	t.Parallel()
	l := newSaleListener(t)
	step := func(name string, role saleadmin.Role, args ...string) {
		t.Helper()
		got := runBinary(t, []string{"HEADGATE_ADMIN_URL=" + l.url, "HEADGATE_ADMIN_TOKEN=" + saleToken(role)}, append([]string{"sale"}, args...)...)
		golden(t, "sale-"+name, strings.ReplaceAll(got.String(), l.url, "http://127.0.0.1:9090"))
	}
	why := func(args ...string) []string {
		return append(args, "--id", strings.Join(args[:1], "-")+"-1", "--reason", "as planned")
	}

	step("list-none", saleadmin.Viewer, "list")
	step("create-viewer", saleadmin.Viewer, why("create", "spring.yaml")...)
	step("create-bad", saleadmin.Admin, why("create", "spring-bad.yaml")...)
	step("create-wrong", saleadmin.Admin, why("create", "spring-wrong.yaml")...)
	step("create", saleadmin.Admin, why("create", "spring.yaml")...)
	step("preflight-no", saleadmin.Viewer, "preflight", "spring")
	step("open-no", saleadmin.Operator, why("open", "spring")...)
	_, err := l.Engine.WatchOnce(t.Context())
	l.Must(err)
	_, _, err = l.Orders.Lease(t.Context(), "sale/sweep", "another", 24*time.Hour)
	l.Must(err)
	step("preflight", saleadmin.Viewer, "preflight")
	step("open", saleadmin.Operator, why("open", "spring")...)
	step("drop-no", saleadmin.Admin, why("drop", "spring")...)

	ann := l.reserve("case", "ann")
	l.reserve("case", "bob")
	l.reserve("case", "bob")
	_, err = l.Engine.Pay(t.Context(), ann, "ann")
	l.Must(err)
	l.Must(l.Bank.Pay(flashsale.IntentKey(ann, 1), flashsale.PayCaptured))
	l.Clock.Pass(time.Minute)
	_, err = l.Engine.PollOnce(t.Context())
	l.Must(err)
	step("story-paid", saleadmin.Viewer, "story", "spring", "ann")
	step("story-refused", saleadmin.Viewer, "story", "spring", "bob")
	step("story-none", saleadmin.Viewer, "story", "spring", "nobody")
	step("story-json", saleadmin.Viewer, "story", "spring", "bob", "--json")

	step("topup", saleadmin.Admin, why("topup", "spring", "phone", "5")...)
	step("withdraw-no", saleadmin.Admin, "withdraw", "spring", "phone", "600", "--id", "w-0", "--reason", "as\x1b[31mplanned")
	step("withdraw", saleadmin.Admin, why("withdraw", "spring", "phone", "2")...)
	step("withdraw-reused", saleadmin.Admin, why("withdraw", "spring", "phone", "3")...)
	step("rate", saleadmin.Operator, why("rate", "spring", "50", "--sku", "phone")...)
	step("pause", saleadmin.Operator, why("pause", "spring", "--sku", "case")...)
	step("resume", saleadmin.Operator, why("resume", "spring", "--sku", "case")...)
	step("close-no", saleadmin.Operator, why("close", "spring")...)

	l.reserve("phone", "\x1b[2Jeve")
	step("report-none", saleadmin.Viewer, "report", "spring")
	_, err = l.Engine.DeliverOnce(t.Context())
	l.Must(err)
	_, err = l.Engine.ReconcileOnce(t.Context())
	l.Must(err)
	step("report", saleadmin.Viewer, "report", "spring")
	step("match", saleadmin.Operator, why("match")...)
	step("dead-none", saleadmin.Viewer, "dead", "spring", "phone")
	l.bury("phone", "carl")
	step("dead", saleadmin.Viewer, "dead", "spring", "phone")
	step("show", saleadmin.Viewer, "show", "spring")
	step("revive", saleadmin.Operator, why("revive", "spring", "phone", l.dead("phone"), "9-9")...)
	step("rebuild-dry", saleadmin.Viewer, "rebuild", "spring", "--dry-run")
	step("rebuild", saleadmin.Admin, why("rebuild", "spring", "--sku", "phone")...)
	step("drain", saleadmin.Operator, why("drain", "spring")...)
	step("show-later", saleadmin.Viewer, "show", "spring")
	step("create-again", saleadmin.Admin, why("create", "spring.yaml")...)
	step("list", saleadmin.Viewer, "list")
	step("show-json", saleadmin.Viewer, "show", "spring", "--json")
	step("show-unknown", saleadmin.Viewer, "show", "summer")
	step("withdraw-no-json", saleadmin.Admin, "withdraw", "spring", "phone", "600", "--id", "w-0", "--reason", "as\x1b[31mplanned", "--json")
}

// bury has a unit taken whose job becomes a dead letter.
func (l *saleListener) bury(sku, user string) {
	l.Helper()
	key := flashsale.Key{Sale: "spring", SKU: sku}
	token, _, err := l.Engine.Token(l.Context(), engine.TokenRequest{Key: key, User: user})
	l.Must(err)
	_, err = l.Engine.Reserve(l.Context(), engine.ReserveRequest{Token: token, Key: key, User: user, Quantity: 1})
	l.Must(err)
	l.Clock.Pass(time.Second)
	s, err := l.Orders.SKU(l.Context(), key)
	l.Must(err)
	jobs, err := l.Stock.Pull(l.Context(), key, s.Epoch, "one", 1, time.Minute)
	if err != nil || len(jobs) != 1 {
		l.Fatalf("%v, %v", jobs, err)
	}
	l.Must(l.Stock.Bury(l.Context(), key, s.Epoch, &jobs[0], "the database refuses it: value too long"))
}

func (l *saleListener) dead(sku string) string {
	l.Helper()
	dead, err := l.Engine.DeadLetters(l.Context(), flashsale.Key{Sale: "spring", SKU: sku}, 1)
	if err != nil || len(dead) != 1 {
		l.Fatalf("%v, %v", dead, err)
	}
	return dead[0].ID
}

// TestSaleMessages holds what is said of bad usage, and of listeners that do not answer, to reviewed files.
func TestSaleMessages(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	elsewhere := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:9/stolen", http.StatusTemporaryRedirect))
	t.Cleanup(elsewhere.Close)
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(gone.Close)
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(hung.Close)
	listener := newSaleListener(t)
	token := "HEADGATE_ADMIN_TOKEN=" + saleToken(saleadmin.Admin)
	local := "XDG_RUNTIME_DIR=" + t.TempDir()
	for name, c := range map[string]struct {
		args, env []string
	}{
		"help":           {args: []string{"--help"}},
		"open-help":      {args: []string{"open", "--help"}},
		"nothing":        {},
		"unknown":        {args: []string{"opne", "spring"}},
		"no-sale":        {args: []string{"open"}, env: []string{token}},
		"one-more":       {args: []string{"show", "a", "b"}, env: []string{token}},
		"no-reason":      {args: []string{"open", "spring"}, env: []string{token}},
		"no-units":       {args: []string{"topup", "spring", "phone", "many", "--reason", "x"}, env: []string{token}},
		"no-token":       {args: []string{"list"}, env: []string{local}},
		"no-url":         {args: []string{"list", "--admin", "127.0.0.1:9090"}, env: []string{token}},
		"a-secret-url":   {args: []string{"list", "--admin", "http://me:hunter2@127.0.0.1:9"}, env: []string{token}},
		"refused":        {args: []string{"list", "--admin", "http://127.0.0.1:1"}, env: []string{token}},
		"refused-twice":  {args: []string{"pause", "spring", "--reason", "x", "--id", "p1", "--admin", "http://127.0.0.1:1"}, env: []string{token}},
		"no-file":        {args: []string{"create", "none.yaml", "--reason", "x"}, env: []string{token}},
		"other-server":   {args: []string{"list", "--admin", other.URL}, env: []string{token}},
		"redirected":     {args: []string{"list", "--admin", elsewhere.URL}, env: []string{token}},
		"wrong-token":    {args: []string{"list", "--admin", listener.url}, env: []string{"HEADGATE_ADMIN_TOKEN=a-token-that-nobody-knows"}},
		"viewer":         {args: []string{"topup", "spring", "mug", "5", "--reason", "x", "--id", "u1", "--admin", listener.url}, env: []string{"HEADGATE_ADMIN_TOKEN=" + saleToken(saleadmin.Viewer)}},
		"viewer-opens":   {args: []string{"open", "spring", "--reason", "x", "--id", "o1", "--admin", listener.url}, env: []string{"HEADGATE_ADMIN_TOKEN=" + saleToken(saleadmin.Viewer)}},
		"bad-gateway":    {args: []string{"list", "--admin", gone.URL}, env: []string{token}},
		"cut":            {args: []string{"pause", "spring", "--reason", "x", "--id", "p1", "--admin", hung.URL}, env: []string{token}},
		"cut-read":       {args: []string{"list", "--admin", hung.URL}, env: []string{token}},
		"https-for-http": {args: []string{"list", "--admin", strings.Replace(listener.url, "http", "https", 1)}, env: []string{token}},
		"no-scheme":      {args: []string{"list", "--admin", "ftp://127.0.0.1:9090"}, env: []string{token}},
		"no-port":        {args: []string{"list", "--admin", "http://127.0.0.1:99999"}, env: []string{token}},
		"no-host":        {args: []string{"list", "--admin", "http://:9090"}, env: []string{token}},
		"units-negative": {args: []string{"topup", "spring", "mug", "-5", "--reason", "x"}, env: []string{token}},
		"units-taken":    {args: []string{"withdraw", "spring", "mug", "-5", "--reason", "x"}, env: []string{token}},
		"units-zero":     {args: []string{"topup", "spring", "mug", "0", "--reason", "x"}, env: []string{token}},
		"units-huge":     {args: []string{"topup", "spring", "mug", "1000000001", "--reason", "x"}, env: []string{token}},
		"units-missing":  {args: []string{"topup", "spring", "mug"}, env: []string{token}},
		"rate-negative":  {args: []string{"rate", "spring", "-1", "--reason", "x"}, env: []string{token}},
		"rate-part":      {args: []string{"rate", "spring", "1.5", "--reason", "x"}, env: []string{token}},
		"rate-huge":      {args: []string{"rate", "spring", "1000001", "--reason", "x"}, env: []string{token}},
		"limit-negative": {args: []string{"list", "--limit", "-1"}, env: []string{token}},
		"limit-text":     {args: []string{"list", "--limit", "all"}, env: []string{token}},
		"dead-limit":     {args: []string{"dead", "spring", "mug", "--limit", "1000"}, env: []string{token}},
		"dead-no-sku":    {args: []string{"dead", "spring"}, env: []string{token}},
		"sale-empty":     {args: []string{"show", ""}, env: []string{token}},
		"sale-path":      {args: []string{"show", "spring/mug"}, env: []string{token}},
		"sku-long":       {args: []string{"topup", "spring", strings.Repeat("x", 65), "5", "--reason", "x"}, env: []string{token}},
		"sku-flag-empty": {args: []string{"report", "spring", "--sku", ""}, env: []string{token}},
		"user-empty":     {args: []string{"story", "spring", ""}, env: []string{token}},
		"user-missing":   {args: []string{"story", "spring"}, env: []string{token}},
		"ids-missing":    {args: []string{"revive", "spring", "mug", "--reason", "x"}, env: []string{token}},
		"id-spaces":      {args: []string{"pause", "spring", "--reason", "x", "--id", "a b"}, env: []string{token}},
		"id-long":        {args: []string{"pause", "spring", "--reason", "x", "--id", strings.Repeat("x", 61)}, env: []string{token}},
		"reason-spaces":  {args: []string{"pause", "spring", "--reason", " "}, env: []string{token}},
		"since":          {args: []string{"match", "--since", "yesterday", "--reason", "x", "--id", "m1", "--admin", listener.url}, env: []string{token}},
		"file-missing":   {args: []string{"create"}, env: []string{token}},
		"file-empty":     {args: []string{"create", "/dev/null", "--reason", "x"}, env: []string{token}},
		"file-folder":    {args: []string{"create", ".", "--reason", "x"}, env: []string{token}},
		"file-endless":   {args: []string{"create", "/dev/zero", "--reason", "x"}, env: []string{token}},
		"preflight-two":  {args: []string{"preflight", "a", "b"}, env: []string{token}},
		"preflight-none": {args: []string{"preflight", "summer", "--admin", listener.url}, env: []string{token}},
		"close-sku":      {args: []string{"close", "spring", "mug", "--reason", "x"}, env: []string{token}},
		"list-more":      {args: []string{"list", "spring"}, env: []string{token}},
		"flag-unknown":   {args: []string{"list", "--admn", "x"}, env: []string{token}},
		"serve-address":  {args: []string{"list"}, env: []string{token, "HEADGATE_ADMIN=:9090", "HEADGATE_ADMIN_URL=http://127.0.0.1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runBinary(t, c.env, append([]string{"sale"}, c.args...)...).String()
			if strings.Contains(got, "hunter2") || strings.Contains(got, saleToken(saleadmin.Admin)) {
				t.Errorf("a secret is shown:\n%s", got)
			}
			golden(t, "sale-usage-"+name, strings.NewReplacer(other.URL, "http://OTHER", elsewhere.URL, "http://ELSEWHERE", gone.URL, "http://GONE", hung.URL, "http://HUNG", listener.url, "http://REAL", strings.Replace(listener.url, "http", "https", 1), "https://REAL").Replace(got))
		})
	}
}

// TestAdminTokenCommand: the token that is printed is the one whose hash is in the line, and no two are the same.
func TestAdminTokenCommand(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 2 {
		got := runBinary(t, nil, "admin", "token", "--role", "operator", "--name", "alice@example.org", "--json")
		var made madeToken
		if err := json.Unmarshal([]byte(got.stdout), &made); err != nil || got.code != 0 {
			t.Fatalf("%v: %s", err, got)
		}
		sum := sha256.Sum256([]byte(made.Token))
		if want := "operator alice@example.org " + hex.EncodeToString(sum[:]); made.Line != want || len(made.Token) < 26 || seen[made.Token] {
			t.Errorf("got %+v, want the line %s", made, want)
		}
		seen[made.Token] = true
	}
	text := runBinary(t, nil, "admin", "token", "--role", "viewer", "--name", "wall")
	lines := strings.Split(text.stdout, "\n")
	if len(lines) < 7 || text.code != 0 {
		t.Fatal(text)
	}
	hidden := strings.NewReplacer(strings.TrimSpace(lines[2]), "TOKEN", lines[6][strings.LastIndex(lines[6], " ")+1:], "SHA256")
	golden(t, "admin-token", hidden.Replace(text.String()))
	golden(t, "admin-token-role", runBinary(t, nil, "admin", "token", "--role", "root", "--name", "x").String())
	golden(t, "admin-token-name", runBinary(t, nil, "admin", "token", "--role", "viewer", "--name", "a b").String())
	golden(t, "admin-nothing", runBinary(t, nil, "admin").String())
}

// TestSaleFindsTheLocalToken: what serve has generated is found by its address, and sent nowhere else.
func TestSaleFindsTheLocalToken(t *testing.T) {
	t.Parallel()
	l := newSaleListener(t)
	runtime := t.TempDir()
	l.Must(os.Mkdir(filepath.Join(runtime, "headgate"), 0o700))
	port := l.url[strings.LastIndex(l.url, ":")+1:]
	l.Must(os.WriteFile(filepath.Join(runtime, "headgate", "admin-"+port+".token"), []byte(saleToken(saleadmin.Admin)+"\n"), 0o600))
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if got := runBinary(t, []string{"XDG_RUNTIME_DIR=" + runtime}, "sale", "list", "--admin", "http://"+host+":"+port); got.code != 0 {
			t.Errorf("%s: %s", host, got)
		}
	}
	if got := runBinary(t, []string{"XDG_RUNTIME_DIR=" + runtime}, "sale", "list", "--admin", "http://192.0.2.1:"+port); got.code != 2 || !strings.Contains(got.stderr, "there is no token") {
		t.Errorf("got %s", got)
	}
}

// TestSaleFromStandardInput: a sale in JSON comes through a pipe.
func TestSaleFromStandardInput(t *testing.T) {
	t.Parallel()
	l := newSaleListener(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := command(ctx, []string{"HEADGATE_ADMIN_URL=" + l.url, "HEADGATE_ADMIN_TOKEN=" + saleToken(saleadmin.Admin)}, "sale", "create", "-", "--reason", "x", "--json")
	cmd.Stdin = strings.NewReader(`{"id":"pipe","currency":"CNY","opens_at":"2026-11-11T20:00:00","closes_at":"2026-11-11T22:00:00","skus":[{"id":"a","total":1,"price":1}]}`)
	var out bytes.Buffer
	cmd.Stdout = &out
	l.Must(cmd.Run())
	var made saleadmin.Created
	if err := json.Unmarshal(out.Bytes(), &made); err != nil || made.Sale.ID != "pipe" || made.OperationID == "" {
		t.Errorf("%v: %s", err, out.String())
	}
}
