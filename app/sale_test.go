package app

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestSale sells over HTTP, from the creation to the order, on both pairs of stores, and goes on after a restart.
func TestSale(t *testing.T) {
	for name, stores := range map[string]func(t *testing.T) SaleConfig{
		"SQLite and memory": func(t *testing.T) SaleConfig {
			return SaleConfig{DB: "sqlite:" + filepath.Join(t.TempDir(), "sale.db")}
		},
		"PostgreSQL and Redis": func(t *testing.T) SaleConfig {
			store, err := ParseStoreURL("redis://" + testservers.Redis(t, testservers.AppendOnly()).Addr())
			if err != nil {
				t.Fatal(err)
			}
			return SaleConfig{DB: testservers.Postgres(t, testservers.DurableData()).URL(), Store: store, Keys: saleKeys}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := stores(t)
			s := openShop(t, ServeConfig{}, cfg)
			s.sell(2)
			ann := s.reserve("ann", s.token("ann"))
			s.pay("ann", ann)
			left := s.token("ben")
			s.webhooks()
			s.strangers(ann)
			s.close()

			s = openShop(t, ServeConfig{}, cfg)
			if r := s.as("ann", "GET", "/spring/orders", ""); r.status != http.StatusOK || !strings.Contains(r.text, `"state":"confirmed"`) {
				t.Errorf("orders after a restart: %d %s", r.status, r.text)
			}
			ben := s.reserve("ben", left) // with a token of before
			if r := s.as("ben", "GET", ben, ""); r.str("state") != "reserved" {
				t.Errorf("ben: %d %s", r.status, r.text)
			}
			if r := s.as("cat", "POST", mug+"/reservations", fmt.Sprintf(`{"token": %q, "quantity": 1}`, s.token("cat"))); r.status != http.StatusConflict || r.str("code") != "sold_out" {
				t.Errorf("the third of two: %d %s", r.status, r.text)
			}
			s.report()
			s.close()
		})
	}
}

// webhooks: what the payment service has not signed is refused, and what it has is understood.
func (s *shop) webhooks() {
	s.t.Helper()
	body := `{"id":"evt_1","type":"payment.captured","data":{"intent":"nobody:1","status":"captured","amount":1250,"currency":"EUR"}}`
	for signature, want := range map[string]string{
		"t=1,v1=00": "invalid_signature",
		simpay.Sign([][]byte{[]byte("another secret")}, time.Now(), []byte(body)): "invalid_signature",
		simpay.Sign([][]byte{[]byte(paySecret)}, time.Now(), []byte(body)):        "unknown_payment",
	} {
		if r := s.send("POST", s.url+"/_headgate/sales/~/webhook", body, simpay.SignatureHeader, signature); r.str("code") != want {
			s.t.Errorf("a webhook signed %.12s…: %d %s, want %s", signature, r.status, r.text, want)
		}
	}
}

// strangers get nothing that is another's, and limits hold here as anywhere.
func (s *shop) strangers(path string) {
	s.t.Helper()
	for _, c := range []struct {
		user, method, path string
		status             int
	}{
		{"", "GET", path, http.StatusUnauthorized}, {"bob", "GET", path, http.StatusNotFound}, {"bob", "POST", path + "/cancel", http.StatusNotFound},
		{"bob", "POST", path + "/pay", http.StatusNotFound}, {"", "GET", "/spring/orders", http.StatusUnauthorized}, {"", "GET", "/spring", http.StatusOK},
		{"", "POST", mug + "/token", http.StatusUnauthorized}, {"", "GET", "/spring/nothing", http.StatusNotFound},
	} {
		if r := s.as(c.user, c.method, c.path, ""); r.status != c.status {
			s.t.Errorf("%s %s as %q: %d %s, want %d", c.method, c.path, c.user, r.status, r.text, c.status)
		}
	}
	for i, want := range []int{201, 201, 201, 429} {
		r := s.as("eve", "POST", mug+"/token", "")
		if r.status != want || r.header.Get("Headgate-Id") == "" || !strings.Contains(r.header.Get("Ratelimit-Policy"), `"tries"`) {
			s.t.Errorf("try %d: %d %v", i, r.status, r.header)
		}
	}
}

// report: nothing is broken by the audit.
func (s *shop) report() {
	s.t.Helper()
	r := s.operate("GET", "/spring/report", "")
	if r.status != http.StatusOK || !strings.Contains(r.text, `"ok":true`) || strings.Contains(r.text, `"ok":false`) {
		s.t.Errorf("the report: %d %s", r.status, r.text)
	}
}

// TestSaleIdentityIsNotForged: a header that nobody vouches for is nobody, and a policy under which a client could forge who it is does
// not take the place of one under which it cannot.
func TestSaleIdentityIsNotForged(t *testing.T) {
	policy := strings.Replace(salePolicy, "127.0.0.0/8", "10.0.0.0/8", 1)
	file := writePolicy(t, policy)
	s := openShop(t, ServeConfig{Policy: file}, SaleConfig{DB: "sqlite::memory:"})
	s.sell(1)
	if r := s.as("ann", "POST", mug+"/token", ""); r.status != http.StatusUnauthorized {
		t.Errorf("a forged header: %d %s", r.status, r.text)
	}
	for _, c := range []struct{ policy, want string }{
		{strings.Replace(policy, "{header: X-User-Id, trusted: true}", "{header: X-User-Id}", 1), `dimension \"user\" does not do: a client can forge it`},
		{strings.NewReplacer("  user: {header: X-User-Id, trusted: true}\n", "", "key: [user]", "key: [ip]").Replace(policy), `dimension \"user\" is not defined`},
	} {
		overwrite(t, file, c.policy)
		if line := s.log.await(t, "policy refused"); !strings.Contains(line, c.want) {
			t.Errorf("refused with %s, want %s", line, c.want)
		}
		if r := s.as("ann", "POST", mug+"/token", ""); r.status != http.StatusUnauthorized {
			t.Errorf("after a policy that was refused: %d %s", r.status, r.text)
		}
	}
	s.close()
}

// TestSaleDrains: an event stream that waits for a result ends when the process is asked to stop, so that nobody is cut.
func TestSaleDrains(t *testing.T) {
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:"})
	s.sell(1)
	path := s.reserve("ann", s.token("ann"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/_headgate/sales"+path+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-User-Id", "ann")
	req.Close = true
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", res, err)
	}
	defer res.Body.Close()
	events := bufio.NewReader(res.Body)
	for line := ""; !strings.Contains(line, "reserved"); {
		if line, err = events.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	s.close()
	if took := time.Since(begun); took > DefaultDrain/2 {
		t.Errorf("it took %s to stop", took)
	}
	if _, err := io.ReadAll(events); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
}

// TestSaleWaitsForItsStores: a process whose stores are away serves all else, says that it is not ready, and sells as soon as they are
// there.
func TestSaleWaitsForItsStores(t *testing.T) {
	redis, service := testservers.Redis(t, testservers.AppendOnly()), newPlainService(t)
	proxy := testservers.NewProxy(t, redis.Addr())
	if err := proxy.Set(testservers.Fault{Refuse: true}); err != nil {
		t.Fatal(err)
	}
	store, err := ParseStoreURL("redis://:secret@" + proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := redis.Do("CONFIG", "SET", "requirepass", "secret"); err != nil {
		t.Fatal(err)
	}
	s := openShop(t, ServeConfig{Upstreams: []string{service}}, SaleConfig{DB: "sqlite::memory:", Store: store})
	if r := s.send("GET", s.admin+"/readyz", ""); r.status != http.StatusServiceUnavailable || r.str("status") != "starting" {
		t.Errorf("readyz: %d %s", r.status, r.text)
	}
	if r := s.as("", "GET", "", ""); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || r.str("code") != "unavailable" {
		t.Errorf("the sale: %d %v %s", r.status, r.header, r.text)
	}
	if r := s.operate("GET", "", ""); r.status != http.StatusServiceUnavailable || r.str("code") != "unavailable" || r.header.Get("Retry-After") == "" ||
		strings.Contains(r.text, "secret") {
		t.Errorf("the admin API: %d %s", r.status, r.text)
	}
	if r := s.send("GET", s.url+"/", ""); r.status != http.StatusOK {
		t.Errorf("the service: %d %s", r.status, r.text)
	}
	if st := s.send("GET", s.admin+"/status", "", "Authorization", "Bearer "+saleToken); strings.Contains(st.text, "secret@") || !strings.Contains(st.text, `"reached": false`) {
		t.Errorf("status: %s", st.text)
	}
	if err := proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	s.until("ready", func() *reply { return s.send("GET", s.admin+"/readyz", "") }, status(http.StatusOK))
	s.sell(1)
	s.reserve("ann", s.token("ann"))
	s.close()
}

// TestSaleRefuses: what is wrong is said at once, in one line, without a password.
func TestSaleRefuses(t *testing.T) {
	redis := testservers.Redis(t, testservers.ACL("seller", "right"))
	dir := t.TempDir()
	open := filepath.Join(dir, "open.db")
	if err := os.WriteFile(open+".keys", []byte(saleKeys), 0o644); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.db")
	for name, c := range map[string]struct {
		sale  SaleConfig
		store string
		want  string
	}{
		"no database":        {SaleConfig{Pay: PayNone}, "", "there is no database for its orders; write --db"},
		"another scheme":     {SaleConfig{DB: "oracle://u:hidden@h/d", Pay: PayNone}, "", "does not begin as any kind of database does"},
		"memory for several": {SaleConfig{DB: "postgres://u:hidden@192.0.2.1/d", Pay: PayNone, Keys: saleKeys}, "", "postgres://u@192.0.2.1/d can be that of several"},
		"no keys":            {SaleConfig{DB: "postgres://u:hidden@192.0.2.1/d", Pay: PayNone}, "redis://192.0.2.1:6379", "set HEADGATE_SALE_KEYS"},
		"no way to pay":      {SaleConfig{DB: "sqlite:" + good}, "", "nobody says who takes the money"},
		"another way to pay": {SaleConfig{DB: "sqlite:" + good, Pay: "cash"}, "", "--pay is neither"},
		"keys of nothing":    {SaleConfig{DB: "sqlite:" + good, Pay: PayNone, Keys: "hidden"}, "", "key 1 is not ID:BASE64"},
		"a short key":        {SaleConfig{DB: "sqlite:" + good, Pay: PayNone, Keys: "k1:aGlkZGVu"}, "", "key k1 has 6 bytes"},
		"keys of others":     {SaleConfig{DB: "sqlite:" + open, Pay: PayNone}, "", "others can read it (mode 0644)"},
		"no such folder":     {SaleConfig{DB: "sqlite:" + filepath.Join(dir, "none", "x.db"), Pay: PayNone}, "", "is in no folder that can be read"},
		"forgeable user":     {SaleConfig{DB: "sqlite:" + good, Pay: PayNone, User: "device"}, "", "a client can forge it"},
		"unknown user":       {SaleConfig{DB: "sqlite:" + good, Pay: PayNone, User: "usr"}, "", `dimension "usr" is not defined`},
		"unknown device":     {SaleConfig{DB: "sqlite:" + good, Pay: PayNone, Device: "dev"}, "", "--sale-device"},
		"no origin":          {SaleConfig{DB: "sqlite:" + good, Pay: PayNone, Origins: []string{"shop.example"}}, "", "is no origin"},
		"no broker":          {SaleConfig{DB: "sqlite:" + good, Pay: PayNone, Relay: "amqp://u:hidden@h:1"}, "", "--relay does not begin"},
		"no topic":           {SaleConfig{DB: "sqlite:" + good, Pay: PayNone, Relay: "kafka://h:1"}, "", "--relay is not kafka://"},
		"a wrong password":   {SaleConfig{DB: "sqlite:" + good, Pay: PayNone}, "redis://seller:hidden@" + redis.Addr(), "the user name or the password is wrong"},
		"another's database": {SaleConfig{DB: "postgres://u:hidden@192.0.2.1:port/d", Pay: PayNone, Keys: saleKeys}, "redis://192.0.2.1:6379", "--db is not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := ParseStoreURL(c.store)
			if err != nil {
				t.Fatal(err)
			}
			c.sale.Store = store
			err = Serve(t.Context(), ServeConfig{Policy: writePolicy(t, salePolicy), Listen: "127.0.0.1:0", Sale: &c.sale, Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// newPlainService answers everything.
func newPlainService(t *testing.T) string {
	t.Helper()
	l, err := Listen(t.Context(), "service", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + l.Addr().String()
}
