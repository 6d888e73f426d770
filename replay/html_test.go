package replay

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
)

// hostile is what clients may send to whoever reads the report.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>'/*{{.}}*/</style>` + "\x1b]0;owned\x07\u202e\x00\xff"

// hostileReport replays a log in which everything that a client chooses is hostile, and whose rule's keys are users.
func hostileReport(t *testing.T) *Report {
	t.Helper()
	p, _ := newFake(t, hostile, fakeRule{RuleInfo: RuleInfo{Name: "users", Keyed: true, Limits: limits("fixed_window 1/1h")}, key: "user"},
		fakeRule{RuleInfo: RuleInfo{Name: "plain", Limits: limits("fixed_window 100/1h")}})
	user, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf(`{"time":"2026-01-01T00:00:00Z","client":%s,"method":"GET","path":"/","host":%s,"user":%s,"user_agent":%s}`, user, user, user, user)
	log := strings.Repeat(line+"\n", 3) + hostile + "\n" + hostile + "\n"
	r, err := Run(t.Context(), Config{Policy: p, Against: &p, Files: []string{"-"}, Stdin: strings.NewReader(log), Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHostileLogsDoNotGetIntoThePage: whatever a client sends stays text, and the page loads nothing and runs nothing.
func TestHostileLogsDoNotGetIntoThePage(t *testing.T) {
	t.Parallel()
	r := hostileReport(t)
	if r.Total.Denied == 0 || len(r.Rules[0].TopKeys) == 0 || r.Log.Malformed != 2 {
		t.Fatalf("the test tests nothing: %+v", r)
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, bad := range []string{"<script", "<img", "onerror=alert(1)>", "\x1b", "\x07", "\x00", "\u202e"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if got := strings.Count(text, "</style>"); got != 1 {
		t.Errorf("%d ends of style", got)
	}
	if outside := regexp.MustCompile(`(?i)<[^>]*\s(src|href|srcset)=|url\(|@import|http-equiv="refresh"`).FindString(text); outside != "" {
		t.Errorf("the page refers to something: %s", outside)
	}
}

func TestHostileLogsDoNotReachTheTerminal(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := hostileReport(t).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, r := range text.String() {
		if r != '\n' && hidden(r) {
			t.Fatalf("the text has %q:\n%q", r, text.String())
		}
	}
}

// TestThePageIsWellFormed: every element is closed, in any state of the report.
func TestThePageIsWellFormed(t *testing.T) {
	t.Parallel()
	alone, _ := shop(t, "new.yaml", "sliding_log 3/5m")
	single, err := Run(t.Context(), Config{Policy: alone, Files: []string{"testdata/shop.log"}, Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Report{
		"two policies": replayShop(t, "testdata/shop.log"), "one policy": single, "hostile": hostileReport(t),
		"nothing": {Interrupted: true, Series: Series{SliceS: 1}, Busiest: Series{SliceS: 1}},
	} {
		var page bytes.Buffer
		if err := r.WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(&page)
		d.Entity = xml.HTMLEntity
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	s := &Series{SliceS: 60, Requests: []int64{60, 180, 0}, Allowed: []int64{60, 60, 0}}
	c := newChart(s)
	if got, want := c.line(s.Requests, 60, 4), "0.0,195.0 186.7,195.0 560.0,65.0 933.3,260.0 1120.0,260.0"; got != want {
		t.Errorf("line %s, want %s", got, want)
	}
	if len(c.Down) != 5 || c.Down[0].Text != "0" || c.Down[4].Text != "4" || c.BeforeLine != "" {
		t.Errorf("%+v", c)
	}
	for x, want := range map[float64]float64{0.3: 0.4, 1: 1, 1.1: 2, 5: 8, 81: 100, 0: 1} {
		if got := niceTop(x); got < want*0.999 || got > want*1.001 {
			t.Errorf("top of %g: %g, want %g", x, got, want)
		}
	}
}
