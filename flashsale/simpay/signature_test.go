package simpay

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
	good := Sign([][]byte{fresh}, now, body)
	for name, c := range map[string]struct {
		header  map[string][]string
		body    []byte
		secrets [][]byte
		ok      bool
	}{
		"good":                     {header: one(good), secrets: [][]byte{fresh}, ok: true},
		"header in small letters":  {header: map[string][]string{"webhook-signature": {good}}, secrets: [][]byte{fresh}, ok: true},
		"both signed, only old":    {header: one(Sign([][]byte{old, fresh}, now, body)), secrets: [][]byte{old}, ok: true},
		"both signed, only new":    {header: one(Sign([][]byte{old, fresh}, now, body)), secrets: [][]byte{fresh}, ok: true},
		"old signed, both known":   {header: one(Sign([][]byte{old}, now, body)), secrets: [][]byte{fresh, old}, ok: true},
		"old signed, only new":     {header: one(Sign([][]byte{old}, now, body)), secrets: [][]byte{fresh}},
		"another's secret":         {header: one(Sign([][]byte{other}, now, body)), secrets: [][]byte{fresh}},
		"another body":             {header: one(good), body: []byte(`{"id":"evt_2"}`), secrets: [][]byte{fresh}},
		"5 min old":                {header: one(Sign([][]byte{fresh}, now.Add(-5*time.Minute), body)), secrets: [][]byte{fresh}, ok: true},
		"301 s old":                {header: one(Sign([][]byte{fresh}, now.Add(-301*time.Second), body)), secrets: [][]byte{fresh}},
		"301 s ahead":              {header: one(Sign([][]byte{fresh}, now.Add(301*time.Second), body)), secrets: [][]byte{fresh}},
		"old, with a new time":     {header: one("t=1800000000," + after(Sign([][]byte{fresh}, now.Add(-time.Hour), body))), secrets: [][]byte{fresh}},
		"other parts are ignored":  {header: one(good + ",v0=abc,x"), secrets: [][]byte{fresh}, ok: true},
		"spaces":                   {header: one(strings.ReplaceAll(good, ",", ", ")), secrets: [][]byte{fresh}, ok: true},
		"no header":                {secrets: [][]byte{fresh}},
		"two headers":              {header: map[string][]string{SignatureHeader: {good, good}}, secrets: [][]byte{fresh}},
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
			if !c.ok {
				code(t, err, flashsale.CodeInvalidSignature)
			}
		})
	}
}

func one(value string) map[string][]string { return map[string][]string{SignatureHeader: {value}} }

// after cuts the timestamp off.
func after(signature string) string {
	_, rest, _ := strings.Cut(signature, ",")
	return rest
}

func FuzzVerify(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	secret := []byte("secret of the fuzzer")
	good := Sign([][]byte{secret}, now, []byte("body"))
	for _, seed := range []string{good, "", "t=1,v1=00", "t=1800000000,t=2", good + ",v1=zz", ",,,=,=,"} {
		f.Add(seed, []byte("body"))
	}
	v := Verifier{Secrets: [][]byte{secret}, Tolerance: time.Minute, Now: now}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		err := v.Verify(one(header), body)
		if err == nil && !strings.Contains(strings.ToLower(header), after(Sign([][]byte{secret}, stampOf(t, header), body))) {
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
