package flashsale_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

var update = flag.Bool("update", false, "write the golden files anew")

func someEvent(change func(e *flashsale.Event)) *flashsale.Event {
	e := &flashsale.Event{
		ID: 17, RID: "aGVhZGdhdGUtb25lLXJpZA", Version: 1, Key: flashsale.Key{Sale: "spring", SKU: "phone.black"}, User: "u-17", Quantity: 2,
		State: flashsale.Reserved, OrderID: "o-aGVhZGdhdGUtb25lLXJpZA", Amount: 1_199_800, Currency: "CNY",
		At: time.Date(2026, 3, 1, 20, 0, 0, 123_456_000, time.FixedZone("CST", 8*3600)),
	}
	if change != nil {
		change(e)
	}
	return e
}

// goldenEvents are one event of each kind, in the order of the golden file.
func goldenEvents() []*flashsale.Event {
	return []*flashsale.Event{
		someEvent(nil),
		someEvent(func(e *flashsale.Event) { e.Version, e.State = 2, flashsale.Confirming }),
		someEvent(func(e *flashsale.Event) { e.Version, e.State = 3, flashsale.Confirmed }),
		someEvent(func(e *flashsale.Event) {
			e.Version, e.State, e.Reason = 2, flashsale.Cancelled, `the buyer's <b>"wish"</b> & 愿望`
		}),
		someEvent(func(e *flashsale.Event) { e.Version, e.State, e.Reason = 2, flashsale.Expired, flashsale.ReasonUnpaid }),
		someEvent(func(e *flashsale.Event) {
			e.State, e.Reason, e.OrderID, e.Amount, e.Currency = flashsale.Rejected, flashsale.ReasonSoldOut, "", 0, ""
		}),
		someEvent(func(e *flashsale.Event) { e.User, e.At = "\xff\x00u", time.Unix(1_772_366_400, 0) }),
		someEvent(func(e *flashsale.Event) { e.User, e.Reason = "线\u0000\u2028", "half a \xe7\xba" }),
	}
}

// TestEventBodies holds the body to a file: whoever changes a byte of it changes what other services read.
func TestEventBodies(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	for _, e := range goldenEvents() {
		body, err := flashsale.MarshalEvent(e)
		if err != nil {
			t.Fatalf("%s: %v", e.MessageID(), err)
		}
		if len(body) >= flashsale.MaxEventBytes {
			t.Errorf("%s: %d bytes", e.MessageID(), len(body))
		}
		got.Write(body)
		got.WriteByte('\n')
	}
	file := filepath.Join("testdata", "events.jsonl")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got\n%s\nwant\n%s", got.Bytes(), want)
	}
}

func TestEventsComeBack(t *testing.T) {
	t.Parallel()
	for _, e := range goldenEvents() {
		body, err := flashsale.MarshalEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := flashsale.ParseEvent(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want := *e
		want.ID, want.At, want.Reason = 0, e.At.UTC(), strings.ToValidUTF8(e.Reason, "\uFFFD")
		if *got != want {
			t.Errorf("got  %+v\nwant %+v", *got, want)
		}
	}
}

func TestMarshalEventRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(e *flashsale.Event){
		"no rid":           func(e *flashsale.Event) { e.RID = "" },
		"a rid with space": func(e *flashsale.Event) { e.RID = "a b" },
		"no sale":          func(e *flashsale.Event) { e.Key.Sale = "" },
		"a long sku":       func(e *flashsale.Event) { e.Key.SKU = strings.Repeat("x", 65) },
		"no user":          func(e *flashsale.Event) { e.User = "" },
		"version 0":        func(e *flashsale.Event) { e.Version = 0 },
		"nothing":          func(e *flashsale.Event) { e.Quantity = 0 },
		"pending":          func(e *flashsale.Event) { e.State = flashsale.Pending },
		"no state":         func(e *flashsale.Event) { e.State = 200 },
		"below 0":          func(e *flashsale.Event) { e.Amount = -1 },
		"a currency":       func(e *flashsale.Event) { e.Currency = "cny" },
		"an order":         func(e *flashsale.Event) { e.OrderID = "o\n1" },
		"a long reason":    func(e *flashsale.Event) { e.Reason = strings.Repeat("x", 1001) },
		"no time":          func(e *flashsale.Event) { e.At = time.Time{} },
	} {
		if _, err := flashsale.MarshalEvent(someEvent(change)); !errors.Is(err, &flashsale.Error{Code: flashsale.CodeInvalidArgument}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseEventRefuses(t *testing.T) {
	t.Parallel()
	good, err := flashsale.MarshalEvent(someEvent(nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"nothing":          "",
		"null":             "null",
		"a list":           "[]",
		"half":             string(good[:len(good)/2]),
		"more after it":    string(good) + "{}",
		"another schema":   swap(t, good, `"schema":1`, `"schema":2`),
		"no schema":        swap(t, good, `"schema":1,`, ``),
		"another id":       swap(t, good, `:1","rid"`, `:2","rid"`),
		"a fraction":       swap(t, good, `"quantity":2`, `"quantity":2.5`),
		"pending":          swap(t, good, `"reserved"`, `"pending"`),
		"an unknown state": swap(t, good, `"reserved"`, `"gone"`),
		"no time":          swap(t, good, `"at":"2026`, `"at":"x`),
		"no user":          swap(t, good, `"user":"u-17",`, ``),
		"two users":        swap(t, good, `"user":"u-17"`, `"user":"u-17","user_base64":"/w=="`),
		"a huge body":      swap(t, good, `"u-17"`, `"`+strings.Repeat("u", flashsale.MaxEventBytes)+`"`),
	} {
		if e, err := flashsale.ParseEvent([]byte(body)); !errors.Is(err, &flashsale.Error{Code: flashsale.CodeInvalidArgument}) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// TestParseEventIgnoresNewFields: what comes in addition does not break a reader.
func TestParseEventIgnoresNewFields(t *testing.T) {
	t.Parallel()
	body, err := flashsale.MarshalEvent(someEvent(nil))
	if err != nil {
		t.Fatal(err)
	}
	e, err := flashsale.ParseEvent([]byte(swap(t, body, `"schema":1`, `"schema":1,"colour":{"x":[1]}`)))
	if err != nil || e.MessageID() != "aGVhZGdhdGUtb25lLXJpZA:1" {
		t.Fatalf("%+v, %v", e, err)
	}
}

func swap(t *testing.T, body []byte, old, with string) string {
	t.Helper()
	if !bytes.Contains(body, []byte(old)) {
		t.Fatalf("%s is not in %s", old, body)
	}
	return strings.Replace(string(body), old, with, 1)
}

// FuzzParseEvent: nothing that comes from a broker does harm, and what is read is written and read again as the same.
func FuzzParseEvent(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "events.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(golden) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		first, err := flashsale.ParseEvent(body)
		if err != nil {
			return
		}
		first.At = first.At.Truncate(time.Microsecond)
		again, err := flashsale.MarshalEvent(first)
		if err != nil {
			t.Fatalf("%+v: %v", first, err)
		}
		second, err := flashsale.ParseEvent(again)
		if err != nil || *second != *first {
			t.Fatalf("%+v\n%+v, %v", first, second, err)
		}
	})
}
