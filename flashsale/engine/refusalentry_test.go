package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/flashsale"
)

// readAll reads an entry.
func readAll(raw string) (id entryID, all []refusalRecord, err error) {
	err = readEntry(raw, func(of entryID, r *refusalRecord) { id, all = of, append(all, *r) })
	return id, all, err
}

func TestEntryRoundTrip(t *testing.T) {
	t.Parallel()
	word := rapid.StringN(0, 40, maxWord)
	number := rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, math.MaxInt64))
	kind := rapid.Custom(func(t *rapid.T) refusalKind {
		return refusalKind{
			key: flashsale.Key{Sale: word.Draw(t, "sale"), SKU: word.Draw(t, "sku")}, code: flashsale.Code(word.Draw(t, "code")),
			detail: word.Draw(t, "detail"), rule: word.Draw(t, "rule"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SliceOfN(kind, 1, 5).Draw(t, "kinds")
		var w entryWriter
		for n := range uint64(2) { // a writer can be used again
			var want []refusalRecord
			for range rapid.IntRange(1, 20).Draw(t, "records") {
				r := refusalRecord{
					user: rapid.Uint64().Draw(t, "user"), kind: rapid.SampledFrom(kinds).Draw(t, "kind"), quantity: number.Draw(t, "quantity"),
					count: max(number.Draw(t, "count"), 1), retry: number.Draw(t, "retry"),
					first: rapid.Int64Range(0, maxTime).Draw(t, "first"),
				}
				r.last = r.first + rapid.Int64Range(0, maxTime).Draw(t, "long")
				if !w.add(&r) {
					t.Fatal("there is no room")
				}
				want = append(want, r)
			}
			raw := string(w.entry(77, n+1))
			id, got, err := readAll(raw)
			if err != nil || id != (entryID{77, n + 1}) || !slices.Equal(got, want) {
				t.Fatalf("%+v of %+v, want %+v: %v", got, id, want, err)
			}
			for _, r := range want {
				if !strings.Contains(raw, needle(r.user)) {
					t.Fatal("a user does not stand in the entry")
				}
			}
			if _, _, err := readAll(raw[:len(raw)-1]); err == nil {
				t.Fatal("an entry that is cut off can be read")
			}
			if _, _, err := readAll(raw + "\x00"); err == nil {
				t.Fatal("an entry with something behind it can be read")
			}
		}
	})
}

func TestNobody(t *testing.T) {
	if got := refusalName(""); got != nobodysRefusals {
		t.Errorf("nobody is %#x, and %#x where it is written down", got, nobodysRefusals)
	}
}

// TestEntryIsBounded: an entry takes what there is room for, and the writer goes on with what it has refused.
func TestEntryIsBounded(t *testing.T) {
	t.Parallel()
	for name, kindsOf := range map[string]func(i int) refusalKind{
		"one kind": func(int) refusalKind { return kindOf("phone", flashsale.CodeSoldOut) },
		"a kind each": func(i int) refusalKind {
			k := kindOf(fmt.Sprint(i), flashsale.CodeSoldOut)
			k.detail, k.rule = strings.Repeat("d", 300), strings.Repeat("r", 300) // cut
			return k
		},
	} {
		var w entryWriter
		total := 0
		for n := uint64(1); n <= 3; n++ {
			added := 0
			for ; w.add(&refusalRecord{user: uint64(total + added), kind: kindsOf(total + added), count: 1, first: 1 << 50, last: 1<<50 + 1000}); added++ {
			}
			raw := w.entry(1, n)
			_, got, err := readAll(string(raw))
			if err != nil || len(got) != added || len(raw) > flashsale.MaxRefusalEntry || len(raw) < flashsale.MaxRefusalEntry-1500 {
				t.Errorf("%s: entry %d of %d bytes has %d of %d records: %v", name, n, len(raw), len(got), added, err)
			}
			for i, r := range got {
				if r.user != uint64(total+i) || r.kind.key != kindsOf(total+i).key {
					t.Fatalf("%s: record %d of entry %d is %+v", name, i, n, r)
				}
			}
			total += added
		}
	}
}

// TestEntryMalformed: what is no entry is told, and nothing of it is taken.
func TestEntryMalformed(t *testing.T) {
	t.Parallel()
	head := "\x01" + "12345678" + "\x01" + "\x00"
	kind := "\x01" + "\x01s\x01k\x01c\x00\x00"
	record := "ABCDEFGH" + "\x00\x01\x01\x00\x00\x00"
	if _, got, err := readAll(head + kind + "\x01" + record); err != nil || len(got) != 1 {
		t.Fatalf("the good one: %+v, %v", got, err)
	}
	huge := strings.Repeat("\xff", 9) + "\x01"
	for name, raw := range map[string]string{
		"nothing":                  "",
		"another version":          "\x02" + head[1:] + kind + "\x01" + record,
		"a head alone":             head,
		"too many kinds":           head + "\xff\xff\xff\x7f" + kind,
		"too many records":         head + kind + "\xff\xff\xff\x7f" + record,
		"a kind that is not there": head + kind + "\x01" + "ABCDEFGH" + "\x01\x01\x01\x00\x00\x00",
		"no kind":                  head + "\x00" + "\x01" + record,
		"a count of none":          head + kind + "\x01" + "ABCDEFGH" + "\x00\x01\x00\x00\x00\x00",
		"a second that is bad":     head + kind + "\x02" + record + record[:13] + "\x80",
		"a quantity beyond all":    head + kind + "\x01" + "ABCDEFGH" + "\x00" + huge + "\x01\x00\x00\x00",
		"a number too long":        head + kind + "\x01" + "ABCDEFGH" + "\x00" + strings.Repeat("\xff", 10) + "\x01\x00\x00\x00",
		"a time beyond all":        head + kind + "\x01" + "ABCDEFGH" + "\x00\x01\x01\x02" + strings.Repeat("\xff", 8) + "\x7f\x00",
	} {
		if _, got, err := readAll(raw); err == nil || len(got) > 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzReadEntry(f *testing.F) {
	var w entryWriter
	for i := range 3 {
		w.add(&refusalRecord{user: refusalName(fmt.Sprint(i)), kind: kindOf(fmt.Sprint(i%2), "sold_out"), quantity: 1, count: 5, first: 1 << 50, last: 1<<50 + 5, retry: 1000})
	}
	f.Add(string(w.entry(5, 9)))
	f.Add("\x01")
	f.Fuzz(func(t *testing.T, raw string) {
		id, got, err := readAll(raw)
		if err != nil {
			if len(got) > 0 {
				t.Fatalf("%d records of what is malformed: %v", len(got), err)
			}
			return
		}
		var again entryWriter
		for i := range got {
			r := &got[i]
			if r.count < 1 || r.quantity < 0 || r.retry < 0 || r.last < r.first {
				t.Fatalf("record %d is %+v", i, r)
			}
			if len(raw) > flashsale.MaxRefusalEntry || r.first != min(max(r.first, -maxTime/2), maxTime/2) || !again.add(r) {
				return
			}
		}
		if len(got) == 0 {
			return
		}
		if id2, got2, err := readAll(string(again.entry(id.by, id.n))); err != nil || id2 != id || !slices.Equal(got, got2) {
			t.Fatalf("%+v is written and read as %+v: %v", got, got2, err)
		}
	})
}
