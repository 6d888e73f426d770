package replay

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// checkEntry fails if a line that is taken for a request is none that a front would pass on.
func checkEntry(t *testing.T, line string, e *entry) {
	t.Helper()
	if clean, err := httpverdict.CleanPath(e.path); err != nil || clean != e.path {
		t.Errorf("%q: path %q is not clean", line, e.path)
	}
	if !isMethod(e.method) || e.client == "" || e.status < 0 || e.status > 999 || e.bytes < 0 || e.took < -1 || len(e.fields) > 64 {
		t.Errorf("%q: %+v", line, e)
	}
	if _, err := headgate.Micros(timeOf(e.at)); err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

func FuzzTextLine(f *testing.F) {
	log, err := os.ReadFile("testdata/shop.log")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		f.Add(strings.TrimSpace(line))
	}
	f.Add(`a b c "\` + `"`)
	f.Fuzz(func(t *testing.T, line string) {
		var p ncsa
		e := &entry{}
		e.reset()
		if p.parse(line, e) == fine {
			checkEntry(t, line, e)
		}
	})
}

func FuzzJSONLine(f *testing.F) {
	f.Add(`{"time":"2026-01-01T00:00:00Z","client":"192.0.2.1","method":"GET","path":"/","status":200,"bytes":1,"duration":5}`, "")
	f.Add(`{"ts":1767225600.5,"request":{"remote_ip":"192.0.2.1","method":"GET","uri":"/x","headers":{"User-Agent":["a","b"]}}}`, "")
	f.Add(`{"t":1e18,"a":{"b":{"c":"192.0.2.1"}},"request":"GET / HTTP/1.1"}`, "time=t,ip=a.b.c,header.x=t,dim.x=t")
	f.Fuzz(func(t *testing.T, line, fields string) {
		mapping, err := ParseFields(fields)
		if err != nil {
			return
		}
		p := jsonLine{table: mapping.table()}
		e := &entry{}
		e.reset()
		if p.parse(line, e) == fine {
			checkEntry(t, line, e)
		}
	})
}

func FuzzTime(f *testing.F) {
	for _, text := range []string{"2026-01-01T00:00:00Z", "1767225600", "1767225600.123456", "-1", "1e300", "10/Oct/2000:13:55:36 -0700", "NaN", "0x1p60"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c clockReader
		at, what := c.any(text)
		if again, also := c.any(text); again != at || also != what {
			t.Errorf("%q: %d (%s), then %d (%s)", text, at, what, again, also)
		}
		if what != fine {
			return
		}
		if _, err := headgate.Micros(timeOf(at)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func FuzzShown(f *testing.F) {
	f.Add("a\x1b[31m\u202e中\xff", 10)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most &= 1023
		got := shown(text, most)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, hidden) || len(got) > 4*(most+len("…")) {
			t.Errorf("%q in %d: %q", text, most, got)
		}
	})
}
