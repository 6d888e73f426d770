package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/replay"
)

// logLine is one request of a generated log.
type logLine struct {
	at     int64 // µs
	ip     string
	path   string
	status int
	took   int64 // µs
}

// logOf makes a log of a few minutes: some clients ask far more than others, and requests come in bursts.
func logOf(seed uint64, n int) []logLine {
	r := rand.New(rand.NewPCG(seed, 21))
	at := time.Date(2026, 11, 11, 19, 58, 30, 0, time.UTC).UnixMicro()
	var all []logLine
	for range n {
		if at += r.Int64N(60_000); r.IntN(200) == 0 {
			at += 5_000_000
		}
		all = append(all, logLine{
			at: at, ip: fmt.Sprintf("192.0.2.%d", int(r.ExpFloat64()*12)), path: []string{"/", "/sms", "/login"}[r.IntN(3)],
			status: []int{200, 200, 401}[r.IntN(3)], took: r.Int64N(3_000_000),
		})
	}
	return all
}

// replayOf replays a log against policies.
func replayOf(t *testing.T, log []logLine, durations bool, texts ...string) *replay.Report {
	t.Helper()
	var b strings.Builder
	for _, l := range log {
		line := map[string]any{"time": time.UnixMicro(l.at).UTC().Format(time.RFC3339Nano), "ip": l.ip, "method": "POST", "path": l.path, "status": l.status}
		if durations {
			line["time"] = time.UnixMicro(l.at + l.took).UTC().Format(time.RFC3339Nano)
			line["duration"] = l.took * 1000
		}
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	cfg := replay.Config{Files: []string{replay.Stdin}, Stdin: strings.NewReader(b.String()), Window: -1}
	for i, text := range texts {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := OpenReplay(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		if i == 0 {
			cfg.Policy = p.Policy
		} else {
			cfg.Against = &p.Policy
		}
	}
	report, err := replay.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// plainPolicy is a bucket for all and a window by address for one path, in the plainest arithmetic.
type plainPolicy struct {
	each, burst int64 // µs for one request of the bucket, and its size
	path        string
	count       int64
	banned      string

	full    int64
	windows map[string]int64
}

const minute = int64(60_000_000)

// decide returns the rule that denies, "" for none. Of two it is the one with the longer wait.
func (p *plainPolicy) decide(l *logLine) string {
	if l.ip == p.banned {
		return "list:banned"
	}
	after := max(p.full, l.at) + p.each
	siteWait := after - l.at - p.burst*p.each
	window := fmt.Sprint(l.ip, l.at/minute)
	windowWait := int64(0)
	if l.path == p.path && p.windows[window]+1 > p.count {
		windowWait = minute - l.at%minute
	}
	switch {
	case siteWait <= 0 && windowWait <= 0:
		p.full = after
		if l.path == p.path {
			p.windows[window]++
		}
		return ""
	case windowWait > siteWait:
		return "one"
	}
	return "site"
}

func (p *plainPolicy) text() string {
	list := ""
	if p.banned != "" {
		list = fmt.Sprintf("lists: {banned: {cidrs: [%s/32]}}\ndeny: [banned]\n", p.banned)
	}
	return fmt.Sprintf("version: 1\n%srules:\n- {name: site, limits: [token_bucket 1/%dus burst=%d]}\n"+
		"- {name: one, match: {paths: [%s]}, key: [ip], limits: [fixed_window %d/1m], unit_cost: 0.00003 USD}\n",
		list, p.each, p.burst, p.path, p.count)
}

// figures are those of a report that can be counted by hand.
type figures struct {
	denied, newOnly, oldOnly, both        int64
	hit, hitBefore, newlyHit, relieved    int64
	came, through                         int64 // in the busiest second
	site, one, oneRequests, oneHit, list  int64
	spent, saved                          float64
	oldSite, oldOne, oldDenied, oldPeakOf int64
}

func countByHand(log []logLine, now, old *plainPolicy) figures {
	var f figures
	came, through, oldThrough := map[int64]int64{}, map[int64]int64{}, map[int64]int64{}
	hit, hitBefore, oneHit := map[string]bool{}, map[string]bool{}, map[string]bool{}
	spent := int64(0)
	for i := range log {
		l := &log[i]
		by, was := now.decide(l), old.decide(l)
		second := l.at / 1_000_000
		came[second]++
		if by == "" {
			through[second]++
		} else {
			f.denied++
			hit[l.ip] = true
		}
		if was == "" {
			oldThrough[second]++
		} else {
			f.oldDenied++
			hitBefore[l.ip] = true
		}
		if l.path == now.path && by != "list:banned" {
			f.oneRequests++
			if by == "" {
				spent++
			}
		}
		switch {
		case by != "" && was != "":
			f.both++
		case by != "":
			f.newOnly++
		case was != "":
			f.oldOnly++
		}
		switch by {
		case "site":
			f.site++
		case "one":
			f.one++
			oneHit[l.ip] = true
		case "list:banned":
			f.list++
		}
		switch was {
		case "site":
			f.oldSite++
		case "one":
			f.oldOne++
		}
	}
	f.came, f.through, f.oldPeakOf = largest(came), largest(through), largest(oldThrough)
	f.hit, f.hitBefore, f.oneHit = int64(len(hit)), int64(len(hitBefore)), int64(len(oneHit))
	f.newlyHit, f.relieved = lacking(hit, hitBefore), lacking(hitBefore, hit)
	f.spent, f.saved = float64(spent*30)/1e6, float64((f.oneRequests-spent)*30)/1e6
	return f
}

func largest(counts map[int64]int64) (most int64) {
	for _, n := range counts {
		most = max(most, n)
	}
	return most
}

// lacking counts what one set has and another has not.
func lacking(have, other map[string]bool) (n int64) {
	for k := range have {
		if !other[k] {
			n++
		}
	}
	return n
}

func figuresOf(r *replay.Report) figures {
	rule := func(name string) replay.RuleReport {
		return r.Rules[slices.IndexFunc(r.Rules, func(x replay.RuleReport) bool { return x.Rule == name })]
	}
	was := func(name string) int64 {
		return r.Difference.Rules[slices.IndexFunc(r.Difference.Rules, func(x replay.RuleDifference) bool { return x.Rule == name })].OldDenied
	}
	one := rule("one")
	return figures{
		denied: r.Total.Denied, newOnly: r.Difference.NewOnly, oldOnly: r.Difference.OldOnly, both: r.Difference.Both,
		hit: r.Total.ClientsHit.N, hitBefore: r.Before.ClientsHit.N, newlyHit: r.Difference.NewlyHit.N, relieved: r.Difference.Relieved.N,
		came: r.Total.PeakBefore, through: r.Total.PeakAfter,
		site: rule("site").Denied, one: one.Denied, oneRequests: one.Requests, oneHit: one.ClientsHit.N, list: r.Lists[0].Denied,
		spent: r.Total.Money[0].Spent, saved: r.Total.Money[0].Saved,
		oldSite: was("site"), oldOne: was("one"), oldDenied: r.Before.Denied, oldPeakOf: r.Before.PeakAfter,
	}
}

// TestReplayCountsAsByHand compares the figures of a report with those of arithmetic that shares nothing with it.
func TestReplayCountsAsByHand(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		log := logOf(seed, 4000)
		policies := func() (now, old *plainPolicy) {
			return &plainPolicy{each: 45_000, burst: 12, path: "/sms", count: 6, banned: "192.0.2.7", windows: map[string]int64{}},
				&plainPolicy{each: 35_000, burst: 12, path: "/login", count: 9, windows: map[string]int64{}}
		}
		now, old := policies()
		got := figuresOf(replayOf(t, log, seed%2 == 0, now.text(), old.text()))
		want := countByHand(log, now, old)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d:\ngot  %+v\nwant %+v", seed, got, want)
		}
		if want.site == 0 || want.one == 0 || want.list == 0 || want.oldOnly == 0 || want.newlyHit+want.relieved == 0 || want.through >= want.came {
			t.Errorf("seed %d: the log shows too little: %+v", seed, want)
		}
	}
}

// TestReplayMeasuresOpenRequests: what keys need of a limit does not depend on whether another rule keeps requests open.
func TestReplayMeasuresOpenRequests(t *testing.T) {
	t.Parallel()
	const login = "version: 1\nrules:\n- {name: login, match: {paths: [/login]}, key: [ip], limits: [fixed_window 1000/day], count_when: response.status == 401}\n"
	log := logOf(3, 3000)
	want := replayOf(t, log, true, login).Suggestions
	got := replayOf(t, log, true, login+"- {name: slots, limits: [concurrency 100000 ttl=1m]}\n").Suggestions
	if !reflect.DeepEqual(got, want) || len(want) != 1 || want[0].Keys.N < 40 || want[0].Need.Max < 20 {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestReplaySaysWhatTheLogLacks: of a rule whose key the log cannot tell, the figures are there, and are marked.
func TestReplaySaysWhatTheLogLacks(t *testing.T) {
	t.Parallel()
	log := logOf(4, 600)
	sms := int64(0)
	for i := range log {
		if log[i].path == "/sms" {
			sms++
		}
	}
	const head = "version: 1\ndimensions: {phone: {json: phone}, user: {header: X-User}}\nrules:\n" +
		"- {name: phone, match: {paths: [/sms]}, key: [phone], limits: [sliding_log 1/1m], unit_cost: 0.05 CNY, missing: "
	const rest = "}\n- {name: page, match: {paths: [/]}, key: ['user | ip'], limits: [token_bucket 1000/s]}\n- {name: login, match: {paths: [/login]}, key: [ip], limits: [token_bucket 1000/s]}\n"
	for missing, denied := range map[string]func(n int64) bool{
		"deny":   func(n int64) bool { return n == sms },
		"shared": func(n int64) bool { return n > sms/2 && n < sms },
		"skip":   func(n int64) bool { return n == 0 },
	} {
		r := replayOf(t, log, false, head+missing+rest)
		phone, page, login := &r.Rules[0], &r.Rules[1], &r.Rules[2]
		if !denied(phone.Denied) || phone.Denied != r.Total.Denied || missing != "skip" && (phone.Requests != sms || phone.ClientsHit.N == 0) {
			t.Errorf("missing %s: %d of %d denied, %d clients hit; %d denied in all", missing, phone.Denied, phone.Requests, phone.ClientsHit.N, r.Total.Denied)
		}
		if missing != "skip" && phone.Money.Spent+phone.Money.Saved-float64(sms)*0.05 > 1e-9 {
			t.Errorf("missing %s: %+v of %d", missing, phone.Money, sms)
		}
		if !slices.Equal(phone.Lacks, []string{"phone"}) || page.Lacks != nil || login.Lacks != nil {
			t.Errorf("missing %s: lacks %v, %v, %v", missing, phone.Lacks, page.Lacks, login.Lacks)
		}
		var text strings.Builder
		if err := r.WriteText(&text); err != nil || strings.Contains(text.String(), "* phone: the log has no phone for its key") != (missing != "skip") ||
			strings.Contains(text.String(), "Beware") != (missing != "skip") || strings.Contains(text.String(), "  phone: sliding_log") || !strings.Contains(text.String(), `dimension "user" comes from`) {
			t.Errorf("missing %s: %v\n%s", missing, err, text.String())
		}
	}
}

// TestReplayCountsMarks: what a rule lets through over its limit is neither denied nor lost.
func TestReplayCountsMarks(t *testing.T) {
	t.Parallel()
	log := logOf(5, 900)
	r := replayOf(t, log, true, "version: 1\nrules:\n- {name: a, key: [ip], limits: [fixed_window 5/1m], on_deny: {action: mark}}\n")
	a := &r.Rules[0]
	if r.Total.Denied != 0 || a.Denied != 0 || a.Marked == 0 || a.Marked != r.Total.Marked || a.Marked != a.Over {
		t.Errorf("%d denied, %d marked by the rule, %d over, %d marked in all", r.Total.Denied, a.Marked, a.Over, r.Total.Marked)
	}
}

// TestReplayFindsDimensionsInHeaders: a dimension is there if the log has its header, or what it is made of.
func TestReplayFindsDimensionsInHeaders(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nclients: {trusted_proxies: [192.0.2.0/24]}\ndimensions:\n" +
		"  agent: {header: User-Agent}\n  app: {header: X-App}\n  user: {header: X-User, trusted: true}\n  did: {cookie: did}\n" +
		"  both: {cel: 'dim.agent + dim.app'}\n  crumb: {cel: 'request.cookies[\"c\"]'}\n  where: {cel: 'request.path'}\nrules:\n"
	rules := ""
	for _, name := range []string{"agent", "app", "user", "did", "both", "crumb", "where"} {
		rules += "- {name: " + name + ", key: [" + name + "], limits: [token_bucket 1000/s]}\n"
	}
	const line = `{"time":"2026-01-01T00:00:00Z","ip":"192.0.2.1","method":"GET","path":"/","http_user_agent":"x","app":"web","u":"ann"}` + "\n"
	for fields, want := range map[string][]string{
		"":                  {"app", "both", "crumb", "did", "user"},
		"header.X-App=app":  {"crumb", "did", "user"},
		"dim.app=app":       {"crumb", "did", "user"},
		"header.X-User=u":   {"app", "both", "crumb", "did", "user"},
		"dim.user=u":        {"app", "both", "crumb", "did"},
		"dim.both=app":      {"app", "crumb", "did", "user"},
		"header.Cookie=app": {"app", "both", "user"},
	} {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte(head+rules), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := OpenReplay(file)
		if err != nil {
			t.Fatal(err)
		}
		mapping, err := replay.ParseFields(fields)
		if err != nil {
			t.Fatal(err)
		}
		r, err := replay.Run(t.Context(), replay.Config{Policy: p.Policy, Files: []string{replay.Stdin}, Stdin: strings.NewReader(line), Fields: mapping, Window: -1})
		if err := errors.Join(err, p.Close()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range r.Rules {
			got = append(got, r.Rules[i].Lacks...)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: lacks %v, want %v", fields, got, want)
		}
	}
}
