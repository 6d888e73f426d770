package paywire

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestSignatures(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	old, fresh, other := []byte("old secret"), []byte("new secret"), []byte("another's secret")
	body := []byte(`{"id":"evt_1"}`)
	good := SignWebhook([][]byte{fresh}, now, body)
	for name, c := range map[string]struct {
		header  map[string][]string
		body    []byte
		secrets [][]byte
		ok      bool
	}{
		"good":                     {header: one(good), secrets: [][]byte{fresh}, ok: true},
		"header in small letters":  {header: map[string][]string{"webhook-signature": {good}}, secrets: [][]byte{fresh}, ok: true},
		"both signed, only old":    {header: one(SignWebhook([][]byte{old, fresh}, now, body)), secrets: [][]byte{old}, ok: true},
		"both signed, only new":    {header: one(SignWebhook([][]byte{old, fresh}, now, body)), secrets: [][]byte{fresh}, ok: true},
		"old signed, both known":   {header: one(SignWebhook([][]byte{old}, now, body)), secrets: [][]byte{fresh, old}, ok: true},
		"old signed, only new":     {header: one(SignWebhook([][]byte{old}, now, body)), secrets: [][]byte{fresh}},
		"another's secret":         {header: one(SignWebhook([][]byte{other}, now, body)), secrets: [][]byte{fresh}},
		"another body":             {header: one(good), body: []byte(`{"id":"evt_2"}`), secrets: [][]byte{fresh}},
		"5 min old":                {header: one(SignWebhook([][]byte{fresh}, now.Add(-5*time.Minute), body)), secrets: [][]byte{fresh}, ok: true},
		"301 s old":                {header: one(SignWebhook([][]byte{fresh}, now.Add(-301*time.Second), body)), secrets: [][]byte{fresh}},
		"301 s ahead":              {header: one(SignWebhook([][]byte{fresh}, now.Add(301*time.Second), body)), secrets: [][]byte{fresh}},
		"old, with a new time":     {header: one("t=1800000000," + after(SignWebhook([][]byte{fresh}, now.Add(-time.Hour), body))), secrets: [][]byte{fresh}},
		"other parts are ignored":  {header: one(good + ",v0=abc,x"), secrets: [][]byte{fresh}, ok: true},
		"spaces":                   {header: one(strings.ReplaceAll(good, ",", ", ")), secrets: [][]byte{fresh}, ok: true},
		"no header":                {secrets: [][]byte{fresh}},
		"two headers":              {header: map[string][]string{WebhookHeader: {good, good}}, secrets: [][]byte{fresh}},
		"no time":                  {header: one(after(good)), secrets: [][]byte{fresh}},
		"two times":                {header: one("t=1," + good), secrets: [][]byte{fresh}},
		"no signature":             {header: one("t=1800000000"), secrets: [][]byte{fresh}},
		"empty signature":          {header: one("t=1800000000,v1="), secrets: [][]byte{fresh}},
		"short signature":          {header: one(good[:len(good)-2]), secrets: [][]byte{fresh}},
		"letters for a time":       {header: one("t=soon," + after(good)), secrets: [][]byte{fresh}},
		"a time beyond all":        {header: one("t=99999999999999999999," + after(good)), secrets: [][]byte{fresh}},
		"a time before all":        {header: one("t=-1800000000," + after(good)), secrets: [][]byte{fresh}},
		"17 signatures":            {header: one(good + strings.Repeat(","+after(good), 16)), secrets: [][]byte{fresh}},
		"very long":                {header: one(good + strings.Repeat(",x", 2000)), secrets: [][]byte{fresh}},
		"no secret is in use":      {header: one(good)},
		"signature of another key": {header: one(good[:len(good)-64] + strings.Repeat("0", 64)), secrets: [][]byte{fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			v := Verifier{Secrets: c.secrets, Tolerance: 5 * time.Minute, Now: now}
			if c.body == nil {
				c.body = body
			}
			err := v.Verify(c.header, c.body)
			if c.ok && err != nil {
				t.Fatal(err)
			}
			if !c.ok && flashsale.CodeOf(err) != flashsale.CodeInvalidSignature {
				t.Fatalf("%v", err)
			}
		})
	}
}

func one(value string) map[string][]string { return map[string][]string{WebhookHeader: {value}} }

// after cuts the timestamp off.
func after(signature string) string {
	_, rest, _ := strings.Cut(signature, ",")
	return rest
}

func FuzzVerify(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	secret := []byte("secret of the fuzzer")
	good := SignWebhook([][]byte{secret}, now, []byte("body"))
	for _, seed := range []string{good, "", "t=1,v1=00", "t=1800000000,t=2", good + ",v1=zz", ",,,=,=,"} {
		f.Add(seed, []byte("body"))
	}
	v := Verifier{Secrets: [][]byte{secret}, Tolerance: time.Minute, Now: now}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		err := v.Verify(one(header), body)
		if err == nil && !strings.Contains(strings.ToLower(header), after(SignWebhook([][]byte{secret}, stampOf(t, header), body))) {
			t.Fatalf("%q is taken for a signature of %q", header, body)
		}
	})
}

// stampOf is the time that a header claims.
func stampOf(t *testing.T, header string) time.Time {
	t.Helper()
	stamp, _, ok := parseSignature(header)
	if !ok {
		t.Fatalf("%q was accepted and cannot be read", header)
	}
	var seconds int64
	for _, c := range strings.TrimPrefix(stamp, "+") {
		seconds = seconds*10 + int64(c-'0')
	}
	return time.Unix(seconds, 0)
}

// TestRequestSignatures: whatever of a request is changed, its signature is good no more; and one of a webhook is none of a request.
func TestRequestSignatures(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	secrets := [][]byte{[]byte("new secret"), []byte("old secret")}
	sent := Request{Method: "POST", Target: "/v1/intents/r:1/void?x=1", Body: []byte("{}")}
	good := SignRequest(secrets, now, &sent)
	for name, c := range map[string]struct {
		header string
		is     Request
		at     time.Duration
		ok     bool
	}{
		"good":           {good, sent, 0, true},
		"5 min later":    {good, sent, 5 * time.Minute, true},
		"301 s later":    {good, sent, 301 * time.Second, false},
		"301 s before":   {good, sent, -301 * time.Second, false},
		"another method": {good, Request{"PUT", sent.Target, sent.Body}, 0, false},
		"another path":   {good, Request{"POST", "/v1/intents/r:2/void?x=1", sent.Body}, 0, false},
		"another query":  {good, Request{"POST", "/v1/intents/r:1/void?x=2", sent.Body}, 0, false},
		"another body":   {good, Request{"POST", sent.Target, []byte("{ }")}, 0, false},
		"no body":        {good, Request{"POST", sent.Target, nil}, 0, false},
		"of a webhook":   {SignWebhook(secrets, now, []byte("\nPOST\n"+sent.Target+"\n{}")), sent, 0, false},
		"none":           {"", sent, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, secret := range secrets {
				v := Verifier{Secrets: [][]byte{secret}, Tolerance: DefaultTolerance, Now: now.Add(c.at)}
				err := v.VerifyRequest(map[string][]string{RequestHeader: {c.header}}, &c.is)
				if c.ok != (err == nil) || !c.ok && flashsale.CodeOf(err) != flashsale.CodeInvalidSignature {
					t.Errorf("%v", err)
				}
			}
		})
	}
	v := Verifier{Secrets: secrets, Tolerance: DefaultTolerance, Now: now}
	if v.Verify(map[string][]string{WebhookHeader: {good}}, []byte("\nPOST\n"+sent.Target+"\n{}")) == nil {
		t.Error("the signature of a request is taken for that of a webhook")
	}
}

// TestMessages: what is written is read again as it was.
func TestMessages(t *testing.T) {
	now := time.Unix(1_800_000_000, 123456789).UTC()
	secrets := [][]byte{[]byte("a secret")}
	p := flashsale.ProviderPayment{IntentKey: "r:1", Status: flashsale.PayCaptured, Amount: 1250, Currency: "EUR", URL: "https://pay.example.com/r:1", ChangedAt: now}
	body := Message("evt_1", &p)
	v := &Verifier{Secrets: secrets, Tolerance: DefaultTolerance, Now: now}
	event, err := ReadMessage(v, one(SignWebhook(secrets, now, body)), body)
	if err != nil || event.ID != "evt_1" || event.Payment != p {
		t.Errorf("%+v, %v", event, err)
	}
	long := make([]byte, MaxWebhook+1)
	for name, c := range map[string]struct {
		body []byte
		want flashsale.Code
	}{"no JSON": {[]byte("{"), flashsale.CodeInvalidArgument}, "a text for an amount": {[]byte(`{"data":{"amount":"1"}}`), flashsale.CodeInvalidArgument}, "long": {long, flashsale.CodeInvalidSignature}} {
		if _, err := ReadMessage(v, one(SignWebhook(secrets, now, c.body)), c.body); flashsale.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
