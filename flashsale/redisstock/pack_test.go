package redisstock

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// FuzzParse: whatever lies in Redis, reading it ends without a panic, and a text that is read is written as it was.
func FuzzParse(f *testing.F) {
	e := flashsale.Entry{RID: "r", User: "u", Quantity: 3, State: flashsale.Reserved, Version: 1 << 52, At: time.UnixMicro(1).UTC()}
	f.Add(packEntry(&e))
	f.Add(packBuyer(&flashsale.Buyer{User: "u", Quantity: 1, RIDs: []string{"a", "b"}}))
	t := text{quantity: 1, user: "u\x00", body: "b", known: true, origin: "o"}
	f.Add(t.string())
	f.Add(strings.Repeat("\x05", jobHead) + "rid," + t.string())
	f.Fuzz(func(t *testing.T, raw string) {
		if read, ok := parseText(raw); ok && read.string() != raw {
			t.Errorf("%q is read as %+v", raw, read)
		}
		if read, of, ok := parseEntry("r", raw); ok && (read.User != of.user || read.Quantity != of.quantity) {
			t.Errorf("%q is read as %+v and %+v", raw, read, of)
		}
		if job, ok := parseJob("1-1", raw); ok && !strings.Contains(raw, job.RID+",") {
			t.Errorf("%q is read as %+v", raw, job)
		}
		if dead, ok := parseDead("1-1", raw); ok && !strings.Contains(raw, dead.Reason) {
			t.Errorf("%q is read as %+v", raw, dead)
		}
		parseHolds(raw)
		isJobID(raw)
	})
}

func TestPackEntry(t *testing.T) {
	for _, e := range []flashsale.Entry{
		{RID: "r", User: "u", Quantity: 1, State: flashsale.Reserved, Version: 1, At: time.UnixMicro(1764475253000001).UTC()},
		{RID: "r", User: strings.Repeat("\xff", 255), Quantity: flashsale.MaxTotal, State: flashsale.Rejected, Version: maxNumber, At: time.Time{}},
		{RID: "r", User: "\x00", State: flashsale.Confirmed, At: time.UnixMicro(-5).UTC()},
	} {
		got, text, ok := parseEntry(e.RID, packEntry(&e))
		if !ok || got != e || text.known {
			t.Errorf("%+v comes back as %+v, %v", e, got, ok)
		}
	}
}

func TestJobIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"1-1": true, "0-0": true, "123456789012345678-123456789012345678": true,
		"": false, "-": false, "1": false, "1-": false, "-1": false, "1-1-1": false, "a-1": false, "1-a": false, "+": false, "1 -1": false,
		"1234567890123456789-1": false, "1-1234567890123456789": false, "1-1\n": false,
	} {
		if isJobID(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}

// TestKeys: all keys of a sku have its tag, and no two skus and epochs share one.
func TestKeys(t *testing.T) {
	s := &Stock{cfg: Config{Namespace: "ns:1"}}
	seen := map[string]bool{}
	for _, key := range []flashsale.Key{{Sale: "a", SKU: "b"}, {Sale: "a.b", SKU: "c"}, {Sale: "a", SKU: "b.c"}, {Sale: "b", SKU: "a"}} {
		for _, epoch := range []int64{1, 11} {
			keys := s.keysOf(key, epoch, forAll)
			if len(keys) != 12 {
				t.Fatalf("%d keys: %q", len(keys), keys)
			}
			for i, k := range keys {
				if !strings.HasPrefix(k, "ns:1:{"+key.Sale+":"+key.SKU+"}:") {
					t.Errorf("%q lacks the tag of %s", k, key)
				}
				if ofSKU := i == 0 || i == 11; seen[k] && !ofSKU {
					t.Errorf("%q is there twice", k)
				}
				seen[k] = true
			}
		}
	}
	if got := s.keysOf(flashsale.Key{Sale: "a", SKU: "b"}, 7, forReserve); strings.Join(got, " ") !=
		"ns:1:{a:b}:epoch ns:1:{a:b}:7:stock ns:1:{a:b}:7:res ns:1:{a:b}:7:user ns:1:{a:b}:7:due ns:1:{a:b}:7:q ns:1:{a:b}:7:marks" {
		t.Errorf("%q", got)
	}
}
