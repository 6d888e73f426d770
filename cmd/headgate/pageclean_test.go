package main

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// TestClean: what people write stays as they write it, and nothing that a terminal would obey, or that is there unseen, is passed on.
func TestClean(t *testing.T) {
	t.Parallel()
	same := []string{
		"", "Spring sale", "春节　大促", "手机壳", "café", "cafe\u0301", "a\nb\tc",
		"👨\u200d👩\u200d👧", "❤\ufe0f\u200d🔥", "👩🏽\u200d🚀", "☎\ufe0e", "1\ufe0f\u20e3", "🇨🇳",
		"می\u200cخواهم", "क्\u200dष", "葛\U000e0100", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
		"مرحبا", "שלום", "�",
	}
	for _, text := range same {
		if got := clean(text); got != text {
			t.Errorf("%+q is shown as %+q", text, got)
		}
	}
	for text, want := range map[string]string{
		"a\u00a0b\u2003c\u202fd":       "a b c d",
		"\x1b[2Jx\x07\x00\r\x7f":       "�[2Jx����",
		"\u009b2J\u0085":               "�2J�",
		"a\u2028b\u2029c":              "a�b�c",
		"\u202eevil\u202c":             "�evil�",
		"\u2066a\u2069\u200e\u200f":    "�a���",
		"\u061cx":                      "�x",
		"a\u200bb\ufeffc\u00add\u2060": "a�b�c�d�",
		"ann\u200d":                    "ann�",
		"é\u200c":                      "é�",
		"\u200d👧":                      "�👧",
		"👧\u200d\u200d👧":               "👧\u200d�👧",
		"x\U000e0041":                  "x�",
		"🏴\U000e007f\U000e0041":        "🏴\U000e007f�",
		"\ue000\U0010ffff":             "��",
		"a\xffb":                       "a�b",
	} {
		if got := clean(text); got != want {
			t.Errorf("%+q is shown as %+q, want %+q", text, got, want)
		}
	}
	if got := cell("a\nb\tc\x1b"); got != "a b c�" {
		t.Errorf("in a cell it is %q", got)
	}
}

// TestNothingIsObeyed: no line of a page has anything in it that a terminal would obey, whatever is written into it.
func TestNothingIsObeyed(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := rune(0); r <= 0xffff; r++ {
		all.WriteRune(r)
	}
	var out strings.Builder
	p := pageOn(&out, &out)
	p.line("%s", all.String())
	p.table([]string{"A", "B"}, [][]string{{all.String(), all.String()}, {all.String()}})
	for _, r := range out.String() {
		if r != '\n' && (unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Co) || unicode.Is(unicode.Cf, r) && r != joiner && r != nonJoiner) {
			t.Errorf("%U is passed on", r)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("there are %d lines, want 4", n)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("春节　大促 👨\u200d👩\u200d👧 \x1b[2J\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		once := clean(text)
		if twice := clean(once); twice != once {
			t.Errorf("%+q is shown as %+q, and that as %+q", text, once, twice)
		}
		for _, r := range once {
			if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
				t.Errorf("%+q is shown with %U", text, r)
			}
		}
	})
}

// TestLongLinesAreBroken between words on a terminal of 80 columns, help in the column of what is said; elsewhere they are not.
func TestLongLinesAreBroken(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := page{paper{out: &out, width: 80}}
	p.line("%s", strings.Repeat("春节 ", 20)+"end")
	p.table([]string{"A", "B"}, [][]string{{"one", "two"}, {"  " + strings.Repeat("why ", 30)}})
	for line := range strings.Lines(out.String()) {
		if w := ansi.StringWidth(strings.TrimSuffix(line, "\n")); w > 80 {
			t.Errorf("%d columns: %s", w, line)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 6 {
		t.Errorf("%d lines, want 6:\n%s", n, out.String())
	}
	out.Reset()
	p.help("      --id string   " + strings.Repeat("word ", 14) + "end")
	if want := "      --id string   " + strings.Repeat("word ", 11) + "word\n" + strings.Repeat(" ", 20) + "word word end\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	example := "  headgate serve --policy policy.yaml --upstream http://app:9000 --store redis://redis:6379 --listen :80"
	if p.help(example); out.String() != example+"\n" {
		t.Errorf("what is to be copied is broken:\n%s", out.String())
	}
	out.Reset()
	if p = pageOn(&out, &out); p.width != 0 {
		t.Errorf("what is no terminal has %d columns", p.width)
	}
}
