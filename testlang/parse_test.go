package testlang_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/testlang"
)

// TestMistakes: each mistake is reported with its place and with what to write.
func TestMistakes(t *testing.T) {
	const one = "limit token_bucket 3/1m\n"
	const two = "limit a: token_bucket 3/1m\nlimit b: fixed_window 3/1m\n"
	const policy = "policy shop.yaml\n"
	for _, tt := range []struct{ name, text, want string }{
		{"unknown line", "limits token_bucket 3/1m", `x.test:1:1: "limits" does not begin a line: write start, limit, policy or at`},
		{"nothing to test", "at 0s take 1 -> allow", "x.test:1:1: nothing to test yet: write a limit or a policy line first"},
		{"start without a time", "start", "x.test:1:1: write start and one time, as in start 2026-01-01T00:00:00Z"},
		{"start that is no time", "start yesterday", `x.test:1:7: "yesterday" is not a time: write one as in 2026-01-01T00:00:00Z or 2026-01-01T08:00:00+08:00`},
		{"start too exact", "start 2026-01-01T00:00:00.0000001Z", "x.test:1:7: 2026-01-01T00:00:00.0000001Z has a part of a microsecond: write at most six decimals"},
		{"start too early", "start 1700-01-01T00:00:00Z", "x.test:1:7: the time 1700-01-01T00:00:00Z is outside the years 1850 to 2095"},
		{"limit without a limit", "limit a:", "x.test:1:1: the limit is missing: write one, as in token_bucket 10/1m"},
		{"limit of an unknown algorithm", "limit bucket 3/1m", `x.test:1:7: limit "bucket 3/1m": algorithm "bucket" is unknown`},
		{"limit without a space", "limit a:token_bucket 3/1m", `x.test:1:7: put a space after the colon of "a:token_bucket"`},
		{"limit of a bad name", "limit a=b: token_bucket 3/1m", `x.test:1:7: "a=b" is not a name: write letters, digits, _, - and .`},
		{"limit twice", two + "limit a: token_bucket 3/1m", "x.test:3:1: limit a stands in line 1 already"},
		{"policy without a file", "policy", "x.test:1:1: write policy and one file"},
		{"policy without an end", "policy <<END\nversion: 1\n", "x.test:3:8: the document that begins in line 1 has no end: write END on a line of its own"},
		{"no time", one + "at", "x.test:2:1: the time is missing"},
		{"no unit", one + "at 5 take 1 -> allow", `x.test:2:4: "5" is not a duration: write one as in 0s, 1.5s, -500ms, 2h30m or 7d`},
		{"nanoseconds", one + "at 5ns take 1 -> allow", "x.test:2:4: 5ns has a part of a microsecond; time counts whole ones"},
		{"range without a step", one + "at 0s..5s take 1 -> allow", "x.test:2:4: a range needs its step: write at 0s..5s every 1s"},
		{"range of no step", one + "at 0s..5s every 0s take 1 -> allow", "x.test:2:17: the step 0s is not above zero"},
		{"range backwards", one + "at 5s..0s every 1s take 1 -> allow", "x.test:2:4: the range 5s..0s runs backwards"},
		{"range too long for numbers", one + "at -106000d..106000d every 1s take 1 -> allow", "x.test:2:4: the range -106000d..106000d is too long"},
		{"too many points", one + "at 0s..1h every 1us take 1 -> allow", "x.test:2:1: the line runs more than 1000000 times"},
		{"too many repeats", one + "at 0s take 1 x1000001 -> allow", "x.test:2:14: x1000001 is outside x1 to x1000000"},
		{"no repeat", one + "at 0s take 1 x0 -> allow", "x.test:2:14: x0 is outside x1 to x1000000"},
		{"both", one + "at 0s..1s every 1ms take 1 x1000 -> allow", "x.test:2:1: the line runs more than 1000000 times"},
		{"no verb", one + "at 0s -> allow", "x.test:2:1: nothing is done"},
		{"unknown verb", one + "at 0s consume 1 -> allow", `x.test:2:7: "consume" cannot be done to a limit: write take, acquire, renew, release, refund or reload`},
		{"request of a limit", one + "at 0s GET / -> allow", `x.test:2:7: "GET" cannot be done to a limit`},
		{"take of nothing", one + "at 0s take -> allow", "x.test:2:1: the number is missing: write take 1"},
		{"take of a word", one + "at 0s take one -> allow", `x.test:2:12: "one" is not a whole number: write take 1`},
		{"take of part", one + "at 0s take 1.5 -> allow", `x.test:2:12: "1.5" is not a whole number`},
		{"refund of nothing", one + "at 0s refund 0 -> ok", "x.test:2:1: refund 0 gives nothing back"},
		{"acquire without a holder", one + "at 0s acquire on=a -> allow", "x.test:2:1: the holder is missing: write one, as in acquire A"},
		{"unknown limit", two + "at 0s take 1 on=c -> allow", `x.test:3:14: no limit is named "c" in this case: write one of a, b`},
		{"unknown limit without names", one + "at 0s take 1 on=c -> allow", `x.test:2:14: no limit is named "c" in this case: leave on= out`},
		{"key of another limit", two + "at 0s take 1 on=a key.b=x -> allow", "x.test:3:19: key.b= is for a limit that the line does not name: add it to on="},
		{"key twice", two + "at 0s take 1 key=a key=b -> allow", "x.test:3:20: key= stands twice"},
		{"unknown option", two + "at 0s take 1 in=a -> allow", `x.test:3:14: "in=a" is not known here: write on=NAME,…, key=K or key.NAME=K, and xN last`},
		{"renew of two", two + "at 0s renew A on=a,b -> ok", "x.test:3:1: renew is of one limit: name one in on="},
		{"reload repeated", two + "at 0s reload a: token_bucket 1/1s x5", `x.test:3:1: reload runs once`},
		{"reload of nothing", two + "at 0s reload", "x.test:3:1: write what the limit becomes"},
		{"counter backwards", policy + "at 0s GET / user=u{9..1} -> allow", "x.test:2:13: {9..1} runs backwards: write the smaller number first"},
		{"counter that leaves what is allowed", policy + "at 0s GET / ip=198.51.100.{1..256} -> allow", "x.test:2:13: ip=198.51.100.256 is not an address"},
		{"counter that begins outside", policy + "at 0s GET / response={99..200} -> allow", "x.test:2:13: response=99 is not a status"},
		{"answer before the request", policy + "at 0s GET / response.after=-1s -> allow", "x.test:2:13: response.after=-1s is before the request"},
		{"answer at no time", policy + "at 0s GET / response.after=soon -> allow", `x.test:2:13: "soon" is not a duration`},
		{"no expectation", one + "at 0s take 1", "x.test:2:1: nothing is expected: end the line with -> and allow or deny"},
		{"empty expectation", one + "at 0s take 1 ->", "x.test:2:1: nothing is expected"},
		{"unknown expectation", one + "at 0s take 1 -> allowed", `x.test:2:17: "allowed" cannot be expected of this line: write allow or deny, error=CODE or allowed=N`},
		{"two verdicts", one + "at 0s take 1 -> allow deny", "x.test:2:23: deny after allow: expect one of them"},
		{"count and field", one + "at 0s take 1 x3 -> allowed=2 remaining=0", "x.test:2:20: allowed= stands alone: check remaining= on a line of its own"},
		{"field twice", one + "at 0s take 1 -> allow remaining=1 remaining=2", "x.test:2:35: remaining= stands twice"},
		{"field of a renewal", one + "at 0s renew A -> ok remaining=1", `x.test:2:21: "remaining=1" cannot be expected of this line: write ok, gone or error=CODE`},
		{"status of a take", one + "at 0s take 1 -> deny status=429", `x.test:2:22: "status=429" cannot be expected of this line`},
		{"a bad duration", one + "at 0s take 1 -> deny retry_after=soon", `x.test:2:22: "soon" is not a duration`},
		{"a bad number", one + "at 0s take 1 -> allow remaining=all", "x.test:2:23: remaining=all is not a whole number"},
		{"a quote inside", one + `at 0s take 1 key=a"b -> allow`, `x.test:2:19: a quote inside a value: write the whole value as a Go string literal, as in key="a\"b"`},
		{"an open quote", one + `at 0s take 1 key="b -> allow`, "x.test:2:18: the Go string literal is not valid or not closed"},
		{"text after a quote", one + `at 0s take 1 key="b"c -> allow`, "x.test:2:21: text follows the closing quote: put a space after it"},
		{"a control character", one + "at 0s take 1 key=\x01 -> allow", `x.test:2:18: the byte 0x01 may stand in a Go string literal only: write "\\x01"`},
		{"a byte that is no text", one + "at 0s take 1 key=\xff -> allow", `x.test:2:18: the byte 0xff may stand in a Go string literal only`},
		{"take of a policy", policy + "at 0s take 1 -> allow", "x.test:2:7: a policy judges requests"},
		{"no path", policy + "at 0s GET user=u -> allow", `x.test:2:11: "user=u" is not a path: begin it with /`},
		{"unknown option of a request", policy + "at 0s GET / usr=u -> allow", "x.test:2:13: usr= is not known here: write peer=, ip=, user=, dim.NAME=, header.NAME="},
		{"no name of a header", policy + "at 0s GET / header.=u -> allow", "x.test:2:13: header.= is not known here"},
		{"a bad address", policy + "at 0s GET / ip=1.2.3 -> allow", "x.test:2:13: ip=1.2.3 is not an address"},
		{"a bad peer", policy + "at 0s GET / peer=here -> allow", "x.test:2:13: peer=here is not an address"},
		{"a bad status", policy + "at 0s GET / response=99 -> allow", "x.test:2:13: response=99 is not a status from 100 to 599"},
		{"user twice", policy + "at 0s GET / user=a user=b -> allow", "x.test:2:20: user= stands twice"},
	} {
		_, err := testlang.Parse("x.test", []byte(tt.text))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s:\nwant %s\ngot  %v", tt.name, tt.want, err)
		}
		var syntax *testlang.SyntaxError
		if err != nil && !errors.As(err, &syntax) {
			t.Errorf("%s: %T is no *SyntaxError", tt.name, err)
		}
	}
}

func TestAllMistakesUpToTen(t *testing.T) {
	_, err := testlang.Parse("x.test", []byte(strings.Repeat("oops\n", 30)))
	if got := strings.Count(err.Error(), "\n") + 1; got != 10 {
		t.Errorf("want 10 mistakes, got %d", got)
	}
}

func TestBounds(t *testing.T) {
	one := "limit fixed_window 1/1s\n"
	for name, text := range map[string]string{
		"the file has":                    strings.Repeat("#", testlang.MaxFileSize+1),
		"the line has":                    "#" + strings.Repeat("x", testlang.MaxLine),
		"more than 20000 lines":           one + strings.Repeat("at 0s take 1 -> allow\n", testlang.MaxSteps+1),
		"run more than 10000000 times":    one + strings.Repeat("at 0s take 1 x1000000 -> allow\n", 11),
		"more than 128 limits in one":     "limit a: fixed_window 1/1s\nat 0s take 1 on=" + strings.Repeat("a,", 128) + "a -> allow",
		"the name of the policy's file i": `policy ""`,
	} {
		if _, err := testlang.Parse("x.test", []byte(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error with %q, got %.200v", name, err)
		}
	}
}

// TestParsed checks what a file becomes.
func TestParsed(t *testing.T) {
	file, err := testlang.Parse("dir/x.test", []byte("\ufeff# comment\r\n"+
		"start 2026-03-01T08:00:00+08:00\r\n"+
		"limit token_bucket 3/1m # a comment\r\n"+
		"at -1.5s..2d every 1h take 1 x3 -> allow retry_after=60s\r\n"+
		"limit b: concurrency 1 ttl=1s\r\n"+
		"at 0s acquire \"x y\" on=b key=`#` -> deny by=b retry_after=unknown\r\n"+
		"policy <<EOT\n"+
		"version: 1\n"+
		"at 0s nonsense\n"+
		"EOT  \n"+
		"at 0s POST /a?b=c#d peer=::ffff:10.0.0.1 ip=2001:db8::1 user=u dim.tier=vip header.X-A=1 header.x-a=2 cookie.a=1 cookie.b=2 host=Shop:80 body=\"{}\" response=401 response.bytes=7 response.header.x-tokens=60 response.after=1500ms -> challenge ip=2001:DB8::1\n"+
		"limit c: fixed_window 1/1s\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 3 || len(file.Cases[0].Limits) != 2 || len(file.Cases[2].Limits) != 1 {
		t.Fatalf("want cases of two limits, of a policy and of a limit, got %+v", file.Cases)
	}
	step := file.Cases[0].Steps[0]
	want := testlang.Step{Line: 4, Text: "at -1.5s..2d every 1h take 1 x3 -> allow retry_after=60s", Start: step.Start,
		From: -1500 * time.Millisecond, To: 48 * time.Hour, Every: time.Hour, Repeat: 3}
	step.Do, step.Want.Fields = nil, append(step.Want.Fields, testlang.Field{})[:1]
	if got := fmt.Sprint(step.Want); got != "{allow  0 [retry_after=1m0s]}" {
		t.Errorf("got the expectations %s", got)
	}
	step.Want = testlang.Want{}
	if fmt.Sprint(*step) != fmt.Sprint(want) || !step.Start.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) || step.Runs() != 3*49 {
		t.Errorf("want %+v, got %+v, %d runs", want, *step, step.Runs())
	}
	if got := fmt.Sprintf("%+v", file.Cases[0].Steps[1].Do); got != "{Cost:1 Holder:x y On:[{Limit:1 Key:#}]}" {
		t.Errorf("acquire: got %s", got)
	}
	if got := string(file.Cases[1].Policy.Text); got != "version: 1\nat 0s nonsense\n" {
		t.Errorf("document: got %q", got)
	}
	got := fmt.Sprintf("%+v", file.Cases[1].Steps[0].Do)
	if got != "{Method:POST Host:Shop:80 Target:/a?b=c#d Peer:10.0.0.1 Header:map[Cookie:[a=1; b=2] X-A:[1 2]] Dimensions:map[ip:2001:db8::1 tier:vip user:u] Body:{} Response:401 ResponseBytes:7 ResponseHeader:map[X-Tokens:[60]] ResponseAfter:1.5s counted:[]}" {
		t.Errorf("request: got %s", got)
	}
}

// FuzzParse: no text makes the parser panic, and what parses stays within the bounds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"limit token_bucket 3/1m burst=3\nat 0s take 1 -> allow remaining=2\n",
		"start 2026-01-01T00:00:00Z\nlimit a: sliding_log 5/5m\nat 0s..9s every 1s take 1 on=a key=\"\\x00\" x3 -> allowed=5",
		"policy <<END\nversion: 1\nEND\nat 1s GET /x?y=z peer=::1 header.A=\"b c\" -> deny by=x status=429 ip=::1",
		"limit c: concurrency 2 ttl=60s\nat -1s acquire A on=c -> allow\nat 1s renew A on=c -> gone\nat 1s release A -> ok\nat 1s refund 3 -> ok\nat 1s reload c: concurrency 0 ttl=1s",
		"policy <<END\nEND\nat 1s..9s every 1s GET /{1..9}?y={00..99} ip=198.51.100.{1..254} user=u{5..4} -> deny",
		"at", "limit", "policy <<", "at 0s..", "limit : x", "->", "\"", "limit fixed_window 1/1s\nat 0s take 1 x -> allow",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := testlang.Parse("f.test", []byte(text))
		if (file == nil) == (err == nil) {
			t.Fatalf("want a file or an error, got %v and %v", file, err)
		}
		if err != nil {
			return
		}
		runs := int64(0)
		for _, c := range file.Cases {
			if (c.Policy == nil) == (len(c.Limits) == 0) {
				t.Fatalf("line %d: want limits or a policy", c.Line)
			}
			for _, s := range c.Steps {
				if s.Do == nil || s.Every < time.Microsecond || s.To < s.From || s.Repeat < 1 {
					t.Fatalf("line %d: %+v", s.Line, s)
				}
				runs += s.Runs()
			}
		}
		if runs > testlang.MaxFileRuns {
			t.Fatalf("%d runs", runs)
		}
	})
}
