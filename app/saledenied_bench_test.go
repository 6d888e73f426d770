package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/gateway"
)

// deniedPolicy denies all but one request of an hour, without asking who somebody is.
const deniedPolicy = `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions:
  user: %s
rules:
  - {name: shut, limits: [fixed_window 1/1h]}
`

// deniedKey signs the tokens of those who are known; another key those of others.
const deniedKey = "0123456789abcdef0123456789abcdef"

func signedBy(key, user string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+user+`"}`))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// BenchmarkDenied is a request that the policy denies, without a network: as it is, and with its place in a story. It is the worst of
// cases: who it was is asked for the story alone.
func BenchmarkDenied(b *testing.B) {
	jwt := "{jwt: {key_file: secret.txt, algorithms: [HS256], claim: sub}}"
	for _, c := range []struct {
		name, dimension string
		header          func(i int) (string, string)
	}{
		{"header", "{header: X-User-Id, trusted: true}", func(i int) (string, string) { return "X-User-Id", fmt.Sprint("user-", i) }},
		{"token", jwt, func(i int) (string, string) {
			return "Authorization", "Bearer " + signedBy(deniedKey, fmt.Sprint("user-", i))
		}},
		{"forged", jwt, func(i int) (string, string) {
			return "Authorization", "Bearer " + signedBy(strings.ToUpper(deniedKey), fmt.Sprint("user-", i))
		}},
	} {
		dir := b.TempDir()
		for file, text := range map[string]string{"policy.yaml": fmt.Sprintf(deniedPolicy, c.dimension), "secret.txt": deniedKey} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		var requests []*http.Request
		for i := range 1000 {
			r := httptest.NewRequest(http.MethodPost, "/_headgate/sales/spring/skus/mug/token", http.NoBody)
			r.RemoteAddr = "127.0.0.1:1234"
			r.Header.Set(c.header(i))
			requests = append(requests, r)
		}
		asIs, noted := deniedGateways(b, filepath.Join(dir, "policy.yaml"))
		for name, g := range map[string]*gateway.Gateway{"as it is": asIs, "noted": noted} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					w := httptest.NewRecorder()
					if g.ServeHTTP(w, requests[i%1000]); w.Code != http.StatusTooManyRequests {
						b.Fatal(w.Code)
					}
				}
			})
		}
	}
}

// deniedGateways are two in front of one sale, the second of which notes what is denied.
func deniedGateways(b *testing.B, policy string) (asIs, noted *gateway.Gateway) {
	b.Helper()
	s := &service{started: time.Now(), cfg: ServeConfig{
		Policy: policy, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), Sale: &SaleConfig{DB: "sqlite::memory:", Pay: PaySimulated},
	}}
	b.Cleanup(func() { _ = s.close() })
	if err := s.build(b.Context()); err != nil {
		b.Fatal(err)
	}
	e := s.sale.live.Load().engine
	now := time.Now()
	sale := flashsale.Sale{ID: "spring", Currency: "EUR", OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(time.Hour), SKUs: []flashsale.SKU{{ID: "mug", Total: 1, Price: 1}}}.WithDefaults()
	if err := e.CreateSale(b.Context(), &sale); err != nil {
		b.Fatal(err)
	}
	_, _, _ = e.Token(b.Context(), engine.TokenRequest{Key: flashsale.Key{Sale: "spring", SKU: "mug"}, User: "x"}) // it is known now
	var err error
	asIs, err = gateway.New(gateway.Config{Reserved: s.sale, Decider: s.reloader.guard, Observe: s.metrics.request})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = asIs.Close() })
	first := httptest.NewRequest(http.MethodGet, "/_headgate/sales", http.NoBody)
	first.RemoteAddr = "127.0.0.1:1234"
	asIs.ServeHTTP(httptest.NewRecorder(), first) // takes what there is
	return asIs, s.gateway
}
