package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replayed runs a policy of one rule over logs.
func replayed(t *testing.T, cfg Config, limit string) (*Report, error) {
	t.Helper()
	p, f := newFake(t, "p.yaml", fakeRule{RuleInfo: RuleInfo{Name: "all", Keyed: true, Limits: limits(limit)}, key: "ip"})
	cfg.Policy = p
	_ = f
	return Run(t.Context(), cfg)
}

func mustReplay(t *testing.T, limit string, files ...string) *Report {
	t.Helper()
	r, err := replayed(t, Config{Files: files, Window: -1}, limit)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// lineAt is a line at a second of a day, in the zone that nginx writes.
func lineAt(second int, ip, path string) string {
	at := time.Date(2026, 11, 11, 0, 0, second, 0, time.UTC)
	return fmt.Sprintf("%s - - [%s] \"GET %s HTTP/1.1\" 200 1\n", ip, at.Format(commonLayout), path)
}

func squeeze(t *testing.T, members ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, m := range members {
		w := gzip.NewWriter(&b)
		if _, err := io.WriteString(w, m); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestOneLogInManyShapes: however the lines come, the report is the same but for the names of the files.
func TestOneLogInManyShapes(t *testing.T) {
	t.Parallel()
	var first, second, odd, even, all strings.Builder
	for i := range 400 {
		line := lineAt(i, fmt.Sprintf("192.0.2.%d", i%5), "/")
		all.WriteString(line)
		half, parity := &first, &even
		if i >= 200 {
			half = &second
		}
		if i%2 == 1 {
			parity = &odd
		}
		half.WriteString(line)
		parity.WriteString(line)
	}
	want := mustReplay(t, "sliding_log 3/1m", writeFile(t, "all", all.String()))
	if want.Total.Denied == 0 || want.Total.Allowed == 0 {
		t.Fatalf("the test tests nothing: %+v", want.Total)
	}
	file := func(name, text string) string { return writeFile(t, name, text) }
	for name, files := range map[string][]string{
		"rotated, newest first":         {file("a", second.String()), file("b", first.String())},
		"rotated and compressed":        {file("a", second.String()), file("b", squeeze(t, first.String()))},
		"gzip of several members":       {file("a.gz", squeeze(t, first.String(), second.String()))},
		"two servers side by side":      {file("a", odd.String()), file("b", even.String())},
		"CRLF":                          {file("a", strings.ReplaceAll(all.String(), "\n", "\r\n"))},
		"without the last line's end":   {file("a", strings.TrimSuffix(all.String(), "\n"))},
		"blank lines and a mark before": {file("a", "\xef\xbb\xbf\n"+strings.ReplaceAll(all.String(), "\n", "\n\n"))},
		"NULs of a truncated file":      {file("a", strings.Repeat("\x00", 5000)+all.String())},
		"an empty file beside":          {file("a", all.String()), file("b", "")},
	} {
		got := mustReplay(t, "sliding_log 3/1m", files...)
		got.Log.Files = want.Log.Files
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
	stdin, err := replayed(t, Config{Files: []string{Stdin}, Stdin: strings.NewReader(squeeze(t, all.String())), Window: -1}, "sliding_log 3/1m")
	if err != nil {
		t.Fatal(err)
	}
	stdin.Log.Files = want.Log.Files
	if !reflect.DeepEqual(stdin, want) {
		t.Errorf("standard input:\ngot  %+v\nwant %+v", stdin, want)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seconds                   []int
		outOfOrder, late, allowed int64
	}{
		"in order":                     {[]int{0, 1, 2, 3}, 0, 0, 1},
		"within the window":            {[]int{5, 0, 9, 3}, 2, 0, 1},
		"a minute apart, out of order": {[]int{60, 55, 0}, 2, 1, 1}, // the last is judged when the window ends
		"the window's edge":            {[]int{10, 0}, 1, 0, 1},
		"beyond it":                    {[]int{30, 40, 19}, 1, 1, 1},
	} {
		var log strings.Builder
		for _, s := range c.seconds {
			log.WriteString(lineAt(s, "192.0.2.1", "/"))
		}
		r := mustReplay(t, "sliding_log 1/10m", writeFile(t, "log", log.String()))
		if r.Log.OutOfOrder != c.outOfOrder || r.Log.Late != c.late || r.Total.Allowed != c.allowed || r.Total.Requests != int64(len(c.seconds)) {
			t.Errorf("%s: %d out of order, %d late, %d allowed; want %+v", name, r.Log.OutOfOrder, r.Log.Late, r.Total.Allowed, c)
		}
	}
}

// TestOrderIsThatOfTheLog: requests of one moment are judged as they came, and all of them in the order of their times.
func TestOrderIsThatOfTheLog(t *testing.T) {
	t.Parallel()
	p, f := newFake(t, "p", fakeRule{RuleInfo: RuleInfo{Name: "all", Limits: limits("fixed_window 1/1h")}})
	var seen []httpverdict.Request
	f.seen = &seen
	log := lineAt(3, "192.0.2.1", "/c") + lineAt(1, "192.0.2.1", "/a1") + lineAt(1, "192.0.2.1", "/a2") + lineAt(2, "192.0.2.1", "/b") + lineAt(1, "192.0.2.1", "/a3")
	if _, err := Run(t.Context(), Config{Policy: p, Files: []string{"-"}, Stdin: strings.NewReader(log), Window: -1}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range seen {
		got = append(got, r.Path)
	}
	if want := "/a1 /a2 /a3 /b /c"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestStrayTimes: a line with a broken clock does not carry the others with it.
func TestStrayTimes(t *testing.T) {
	t.Parallel()
	stray := strings.Replace(lineAt(0, "192.0.2.9", "/stray"), "2026", "2090", 1)
	old := strings.Replace(lineAt(0, "192.0.2.9", "/stray"), "2026", "1970", 1)
	var normal []string
	for i := range 40 {
		normal = append(normal, lineAt(i*10, "192.0.2.1", "/"))
	}
	with := func(at int, line string) string {
		return strings.Join(normal[:at], "") + line + strings.Join(normal[at:], "")
	}
	want := mustReplay(t, "sliding_log 3/1m", writeFile(t, "log", with(0, "")))
	for name, c := range map[string]struct {
		log         string
		stray, late int64
	}{
		"first, far ahead":   {with(0, stray), 1, 0},
		"middle, far ahead":  {with(20, stray), 1, 0},
		"first, long ago":    {with(0, old), 1, 0},
		"middle, long ago":   {with(20, old), 0, 1},
		"two in a row":       {with(20, stray+stray), 2, 0},
		"early, far ahead":   {with(3, stray), 1, 0},
		"the second of all":  {with(1, stray), 1, 0},
		"one of either kind": {with(20, stray+old), 1, 1},
	} {
		r := mustReplay(t, "sliding_log 3/1m", writeFile(t, "log", c.log))
		if r.Log.Stray != c.stray || r.Log.Late != c.late || r.Total.Denied != want.Total.Denied || !r.Log.From.Equal(want.Log.From) || !r.Log.To.Equal(want.Log.To) {
			t.Errorf("%s: %d stray, %d late, %d denied until %s; want %d, %d, %d, %s", name, r.Log.Stray, r.Log.Late, r.Total.Denied, r.Log.To,
				c.stray, c.late, want.Total.Denied, want.Log.To)
		}
	}
}

// TestGapsAreNoStrayTimes: a quiet night, or a service with a request a day, is no broken clock.
func TestGapsAreNoStrayTimes(t *testing.T) {
	t.Parallel()
	for name, gap := range map[string]int{"a request an hour": 3600, "a request a day": 86400, "a request in three weeks": 21 * 86400} {
		var log strings.Builder
		for i := range 50 {
			log.WriteString(lineAt(i*gap, "192.0.2.1", "/"))
		}
		r := mustReplay(t, "sliding_log 1/10m", writeFile(t, "log", log.String()))
		if r.Log.Stray+r.Log.Late+r.Total.Denied != 0 || r.Log.To.Sub(r.Log.From) != time.Duration(49*gap)*time.Second {
			t.Errorf("%s: %+v, %d denied", name, r.Log, r.Total.Denied)
		}
	}
}

// TestAGapOfAboutAnHour: two lines that are a little out of order after a gap confirm each other.
func TestAGapOfAboutAnHour(t *testing.T) {
	t.Parallel()
	r := mustReplay(t, "sliding_log 1/10m", writeFile(t, "log", lineAt(0, "192.0.2.1", "/")+lineAt(3604, "192.0.2.1", "/")+lineAt(3598, "192.0.2.2", "/")))
	if r.Log.Stray+r.Log.Late+r.Total.Denied != 0 || r.Log.OutOfOrder != 1 || r.Log.To.Sub(r.Log.From) != 3604*time.Second {
		t.Errorf("%+v, %d denied", r.Log, r.Total.Denied)
	}
}

// TestAProseOfAThousandLines: what stands before a log is malformed, and no reason to give up.
func TestAProseOfAThousandLines(t *testing.T) {
	t.Parallel()
	log := strings.Repeat("a trace of many lines\n", 5000) + lineAt(0, "192.0.2.1", "/")
	if r := mustReplay(t, "sliding_log 1/10m", writeFile(t, "log", log)); r.Log.Malformed != 5000 || r.Log.Requests != 1 {
		t.Errorf("%+v", r.Log)
	}
}

// TestOneFileTwice: one log under two names would count twice.
func TestOneFileTwice(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "log", lineAt(0, "192.0.2.1", "/"))
	other := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, other); err != nil {
		t.Fatal(err)
	}
	_, err := replayed(t, Config{Files: []string{file, other}, Window: -1}, "sliding_log 1/1m")
	if want := "it is the same file as " + file; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	same := writeFile(t, "copy", lineAt(0, "192.0.2.1", "/")) // the same text is no reason
	if r, err := replayed(t, Config{Files: []string{file, same}, Window: -1}, "sliding_log 1/1m"); err != nil || r.Log.Lines != 2 {
		t.Errorf("%v", err)
	}
}

func TestBadLogs(t *testing.T) {
	t.Parallel()
	good := lineAt(0, "192.0.2.1", "/")
	for name, c := range map[string]struct{ file, want string }{
		"missing":           {filepath.Join(t.TempDir(), "no.log"), "no.log: it cannot be opened: no such file or directory"},
		"a folder":          {t.TempDir(), "it is a folder; name the files in it"},
		"empty":             {writeFile(t, "log", ""), "the log is empty"},
		"blank lines":       {writeFile(t, "log", "\n\n\r\n"), "the log is empty"},
		"prose":             {writeFile(t, "log", "dear diary\ntoday\n"), `none of its first 2 lines is that of an access log; tried common and combined (nginx, Apache; also with a host before the client) and JSON lines; line 1: there is no "request" in quotes: dear diary`},
		"JSON of no log":    {writeFile(t, "log", `{"a":1}`), "line 1: no field gives the time (name it with --fields): {\"a\":1}"},
		"binary":            {writeFile(t, "log", "\x7fELF\x02\x01\x01\x00\x1b[31m"), `line 1: there is no "request" in quotes: \x7fELF\x02\x01\x01\x00\x1b[31m`},
		"zstd":              {writeFile(t, "log", "\x28\xb5\x2f\xfd\x00\x00"), "it is compressed with zstd, and only gzip is read: zstd -dc FILE"},
		"xz":                {writeFile(t, "log", "\xfd7zXZ\x00\x00"), "it is compressed with xz"},
		"bzip2":             {writeFile(t, "log", "BZh91AY&SY"), "it is compressed with bzip2"},
		"no gzip after all": {writeFile(t, "log", "\x1f\x8bnot really"), "it begins like gzip and is not"},
		"only handshakes":   {writeFile(t, "log", strings.Replace(good, "GET / HTTP/1.1", `\x16\x03`, 1)), "no line is an HTTP request that reaches a policy, of 1"},
		"a long line":       {writeFile(t, "log", strings.Repeat("x", 1<<20)), "line 1: it is longer than 64 KiB: xxx"},
	} {
		_, err := replayed(t, Config{Files: []string{c.file}, Window: -1}, "sliding_log 1/1m")
		var bad *LogError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"there is no log":        {},
		"is named twice":         {Files: []string{"a", "a"}},
		"no standard input":      {Files: []string{"-"}},
		"the window 1h0m0s is":   {Files: []string{"a"}, Window: time.Hour},
		"no policy to compare":   {Files: []string{"a"}, Against: &Policy{}},
		"20000 logs are too man": {Files: make([]string, 20000)},
	} {
		if _, err := replayed(t, cfg, "sliding_log 1/1m"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := Run(t.Context(), Config{Files: []string{"a"}}); err == nil {
		t.Error("there is no policy, and no error")
	}
}

// TestBrokenTail: what can be read of a log that breaks off is replayed, and the report says where it ends.
func TestBrokenTail(t *testing.T) {
	t.Parallel()
	whole := squeeze(t, strings.Repeat(lineAt(0, "192.0.2.1", "/"), 20000))
	r := mustReplay(t, "sliding_log 1/1m", writeFile(t, "log.gz", whole[:len(whole)-20]))
	if r.Total.Requests < 1000 || len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "cannot be read beyond line") {
		t.Errorf("%d requests, notes %q", r.Total.Requests, r.Notes)
	}
}

func TestMalformedLinesAreCounted(t *testing.T) {
	t.Parallel()
	log := lineAt(0, "192.0.2.1", "/") + strings.Repeat("?\x1b[2J\u202ebad\xff\n", 9) + strings.Repeat("y", 70_000) + "\n" + lineAt(1, "192.0.2.1", "/")
	r := mustReplay(t, "sliding_log 1/1m", writeFile(t, "log", log))
	if r.Log.Malformed != 10 || r.Total.Requests != 2 || r.Log.Lines != 12 || len(r.Log.MalformedLines) != 5 {
		t.Errorf("%+v", r.Log)
	}
	if got := r.Log.MalformedLines[4]; got.Line != 6 || got.Text != `?\x1b[2J\xe2\x80\xaebad\xff` {
		t.Errorf("%+v", got)
	}
}

// TestTheAnswerOfTheLogIsTheResult: status and size come to the policy, the user only if it has that dimension.
func TestTheAnswerOfTheLogIsTheResult(t *testing.T) {
	t.Parallel()
	p, f := newFake(t, "p", fakeRule{RuleInfo: RuleInfo{Name: "all", Keyed: true, Limits: limits("fixed_window 9/1h")}, key: "user"})
	var done []httpverdict.Result
	var seen []httpverdict.Request
	f.done, f.seen = &done, &seen
	log := `{"time":"2026-01-01T00:00:00Z","client":"192.0.2.1","method":"POST","path":"/x?a=b","host":"Shop.example:80","status":401,"bytes":77,"request_bytes":5,"user":"ann","http_user_agent":"x"}`
	if _, err := Run(t.Context(), Config{Policy: p, Files: []string{"-"}, Stdin: strings.NewReader(log), Window: -1}); err != nil {
		t.Fatal(err)
	}
	if len(done) != 1 || done[0].Status != 401 || done[0].Bytes != 77 || done[0].RequestBytes != 5 {
		t.Errorf("result %+v", done)
	}
	r := seen[0]
	if r.Method != "POST" || r.Path != "/x" || r.RawQuery != "a=b" || r.Host != "shop.example" || r.ContentLength != 5 {
		t.Errorf("request %+v", r)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var p Progress
	text := strings.Repeat(lineAt(0, "192.0.2.1", "/"), 100)
	if _, err := replayed(t, Config{Files: []string{writeFile(t, "log", text)}, Progress: &p, Window: -1}, "sliding_log 1/1m"); err != nil {
		t.Fatal(err)
	}
	if size := int64(len(text)); p.Read.Load() != size || p.Total.Load() != size || p.Lines.Load() != 100 || p.Judged.Load() != 100 {
		t.Errorf("%d of %d bytes, %d lines, %d judged", p.Read.Load(), p.Total.Load(), p.Lines.Load(), p.Judged.Load())
	}
}

// TestSlotsAreHeldAsLongAsTheLogSays: a request occupies its slot from its beginning to its end.
func TestSlotsAreHeldAsLongAsTheLogSays(t *testing.T) {
	t.Parallel()
	p, f := newFake(t, "p", fakeRule{RuleInfo: RuleInfo{Name: "slots", Limits: limits("concurrency 2 ttl=1h")}})
	var done []httpverdict.Result
	f.done = &done
	line := func(end int, took string) string {
		return fmt.Sprintf(`{"time":"2026-01-01T00:00:%02dZ","client":"192.0.2.1","method":"GET","path":"/","status":%d%s}`+"\n", end, 200+end, took)
	}
	// From 0 to 6, 0 to 2, 1 to 3 and 2 to 5: the third finds no slot, the fourth that of the second.
	log := line(2, `,"duration":"2s"`) + line(3, `,"seconds":2,"request_time":"2.000"`) + line(5, `,"duration":3000000000`) + line(6, `,"duration":6.0`)
	r, err := Run(t.Context(), Config{Policy: p, Files: []string{"-"}, Stdin: strings.NewReader(log), Window: -1})
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	for _, d := range done {
		order = append(order, d.Status)
	}
	if r.Total.Denied != 1 || r.Total.Allowed != 3 || !reflect.DeepEqual(order, []int{202, 205, 206}) || len(r.Notes) != 1 {
		t.Errorf("%d denied, ended in the order %v, notes %q", r.Total.Denied, order, r.Notes)
	}
}
