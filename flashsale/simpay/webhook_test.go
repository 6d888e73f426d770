package simpay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
)

func TestWebhooksMisbehaveByChance(t *testing.T) {
	for _, c := range []struct {
		name  string
		b     Behaviour
		after time.Duration
		want  []flashsale.PayStatus
	}{
		{"at once", Behaviour{}, 0, []flashsale.PayStatus{open, captured}},
		{"on their way", Behaviour{Webhook: Range{Min: time.Second}}, 999 * time.Millisecond, nil},
		{"lost", Behaviour{Lost: 1}, time.Hour, nil},
		{"twice", Behaviour{Twice: 1}, 0, []flashsale.PayStatus{open, open, captured, captured}},
		{"late, not yet", Behaviour{Late: 1, LateBy: time.Minute}, time.Minute - 1, nil},
		{"late", Behaviour{Late: 1, LateBy: time.Minute}, time.Minute, []flashsale.PayStatus{open, captured}},
		{"in the other order", Behaviour{Reordered: 1, LateBy: time.Minute}, time.Minute, []flashsale.PayStatus{open, captured}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1, Config{Behaviour: c.b})
			b.create("k")
			if err := b.Pay("k", captured); err != nil {
				t.Fatal(err)
			}
			b.pass(c.after)
			if !slices.Equal(b.statuses(), c.want) {
				t.Fatalf("told %v; want %v", b.statuses(), c.want)
			}
			ids := map[string]flashsale.PayStatus{}
			for _, e := range b.got {
				if s, ok := ids[e.ID]; ok && s != e.Payment.Status {
					t.Fatalf("event %s tells of %s and %s", e.ID, s, e.Payment.Status)
				}
				ids[e.ID] = e.Payment.Status
			}
			if len(b.got) > 0 && len(ids) != 2 {
				t.Fatalf("two events with the ids %v", ids)
			}
		})
	}
}

func TestAWebhookIsWithheldUntilTheNext(t *testing.T) {
	b := newBench(t, 1, Config{Behaviour: Behaviour{Reordered: 1, LateBy: time.Hour}})
	b.create("k")
	b.SetBehaviour(Behaviour{})
	b.pass(time.Minute)
	if err := b.Pay("k", captured); err != nil {
		t.Fatal(err)
	}
	b.pass(2 * time.Hour)
	if want := []flashsale.PayStatus{captured, open}; !slices.Equal(b.statuses(), want) {
		t.Fatalf("told %v; want %v, each once", b.statuses(), want)
	}
}

func TestAWebhookThatLies(t *testing.T) {
	b := newBench(t, 1, Config{Behaviour: Behaviour{Misreport: 1}})
	for i := range 20 {
		b.create(fmt.Sprint("k", i))
	}
	b.pass(0)
	amounts, currencies := 0, 0
	for _, e := range b.got {
		if e.Payment.Amount != 500 {
			amounts++
		}
		if e.Payment.Currency != "EUR" {
			currencies++
		}
	}
	if amounts+currencies != 20 || amounts == 0 || currencies == 0 {
		t.Fatalf("%d wrong amounts and %d wrong currencies in 20 webhooks", amounts, currencies)
	}
	for r := range b.Records() {
		if r.Amount != 500 || r.Currency != "EUR" {
			t.Fatalf("the provider itself says %+v", r)
		}
	}
}

func TestARefusedWebhookComesAgain(t *testing.T) {
	b := newBench(t, 1, Config{RetryAfter: time.Second, Attempts: 4})
	b.create("k")
	b.fail = 3
	for _, c := range []struct {
		pass time.Duration
		want int
	}{{0, 0}, {time.Second, 0}, {2 * time.Second, 0}, {4*time.Second - 1, 0}, {1, 1}} {
		if b.pass(c.pass); len(b.got) != c.want {
			t.Fatalf("after %s more: %d; want %d", c.pass, len(b.got), c.want)
		}
	}
	b.create("l")
	b.fail = 100
	b.pass(time.Hour)
	if s := b.Stats(); s.Lost != 1 || s.Sent != 8 || s.Refused != 7 {
		t.Fatalf("%+v", s)
	}
}

func one(value string) map[string][]string { return map[string][]string{SignatureHeader: {value}} }

func TestSecretsRotate(t *testing.T) {
	b := newBench(t, 1, Config{})
	old, fresh := []byte("a secret of the tests"), []byte("another secret")
	body := []byte(`{"id":"evt_1","data":{"intent":"k","status":"captured"}}`)
	if err := b.SetSecrets(fresh, old); err != nil {
		t.Fatal(err)
	}
	b.create("k")
	b.pass(0) // the receiver verifies
	if _, err := b.Webhook(one(Sign([][]byte{old}, b.now, body)), body); err != nil {
		t.Fatal(err)
	}
	if err := b.SetSecrets(fresh); err != nil {
		t.Fatal(err)
	}
	_, err := b.Webhook(one(Sign([][]byte{old}, b.now, body)), body)
	code(t, err, flashsale.CodeInvalidSignature)
	code(t, b.SetSecrets(), flashsale.CodeInvalidArgument)
	_, err = b.Webhook(one(Sign([][]byte{fresh}, b.now, []byte("{"))), []byte("{"))
	code(t, err, flashsale.CodeInvalidArgument)
	long := make([]byte, paywire.MaxWebhook+1)
	_, err = b.Webhook(one(Sign([][]byte{fresh}, b.now, long)), long)
	code(t, err, flashsale.CodeInvalidSignature)
}

func TestWebhooksOverHTTP(t *testing.T) {
	var p *Provider
	refuse, got := 1, make(chan *flashsale.ProviderEvent, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		event, err := p.Webhook(r.Header, body)
		if err != nil || refuse > 0 {
			refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got <- event
	}))
	defer server.Close()
	client := server.Client()
	client.Timeout = 10 * time.Second
	p = New(Config{Deliver: Post(client, server.URL), RetryAfter: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	in := flashsale.Intent{Key: "r:1", Amount: 500, Currency: "EUR"}
	if _, err := p.Create(t.Context(), &in); err != nil {
		t.Fatal(err)
	}
	if e := <-got; e.Payment.IntentKey != "r:1" || e.Payment.Status != open || e.Payment.Amount != 500 {
		t.Fatalf("%+v", e)
	}
	cancel()
	<-done
	client.CloseIdleConnections()
}

func FuzzWebhook(f *testing.F) {
	f.Add([]byte(`{"id":"e","data":{"intent":"k","status":"captured","amount":1,"currency":"EUR"}}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"data":[]}`))
	secret := []byte("secret of the fuzzer")
	p := New(Config{Secrets: [][]byte{secret}})
	f.Fuzz(func(t *testing.T, body []byte) {
		event, err := p.Webhook(one(Sign([][]byte{secret}, time.Now(), body)), body)
		if (event == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", body, event, err)
		}
	})
}
