package credential

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"as it is", "u-17@example.com", "u-17@example.com"},
		{"capitals", "User@Example.COM", "user@example.com"},
		{"space at the ends", " \t\u3000u 17\u00a0\r\n", "u 17"},
		{"space alone", " \u2003 ", ""},
		{"composed", "Å", "å"},
		{"decomposed", "A\u030a", "å"},
		{"the sign of Ångström", "\u212b", "å"},
		{"the sign of Kelvin", "\u212a", "k"},
		{"capital I with a dot, composed", "\u0130", "i"},
		{"capital I with a dot, decomposed", "I\u0307", "i"},
		{"a small letter that composes where the capital does not", "J\u030c", "ǰ"},
		{"marks in another order", "a\u0323\u0302", "ậ"},
		{"marks in this order", "a\u0302\u0323", "ậ"},
		{"Chinese", "李雷", "李雷"},
		{"a compatible form of a Chinese character", "\uf9e1", "李"},
		{"Korean, decomposed", "\u1112\u1161\u11ab", "한"},
		{"not UTF-8", " ABC\xff\xc3É ", "abc\xff\xc3É"},
		{"as long as is composed", strings.Repeat("É", maxFold/2), strings.Repeat("é", maxFold/2)},
		{"longer", strings.Repeat("É", maxFold/2) + "A", strings.Repeat("É", maxFold/2) + "a"},
		{"long ASCII", strings.Repeat("A", 2*maxFold), strings.Repeat("a", 2*maxFold)},
		{"full-width digits stay", "１３８", "１３８"},
		{"a ligature stays", "ﬁ", "ﬁ"},
		{"sharp s stays", "straße", "straße"},
		{"the last sigma stays", "ΟΔΟΣ ς", "οδοσ ς"},
		{"an invisible character stays", "1\u200b38", "1\u200b38"},
	} {
		if got := Fold(c.in); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

// TestFoldEveryCharacter folds each character by itself, decomposed, and between others.
func TestFoldEveryCharacter(t *testing.T) {
	t.Parallel()
	for r := range rune(unicode.MaxRune + 1) {
		compatible := 0xF900 <= r && r < 0xFB00 || 0x2F800 <= r && r < 0x2FA20 // ideographs of two forms
		if !unicode.In(r, unicode.L, unicode.M, unicode.P, unicode.S, unicode.Z) || unicode.In(r, unicode.Han, unicode.Hangul) && !compatible {
			continue
		}
		for _, text := range [...]string{string(r), "a" + string(r) + "\u0307"} {
			once := Fold(text)
			if twice := Fold(once); twice != once {
				t.Errorf("%q becomes %q, and that %q", text, once, twice)
			}
			if apart := Fold(norm.NFD.String(text)); apart != once {
				t.Errorf("%q becomes %q, and decomposed %q", text, once, apart)
			}
		}
	}
}

func TestFoldKeepsWhatIsFolded(t *testing.T) {
	for _, text := range []string{"u-17@example.com", "李雷", "straße"} {
		if got := testing.AllocsPerRun(100, func() { Fold(text) }); got != 0 {
			t.Errorf("%q: %v allocations", text, got)
		}
	}
}

// hostileTexts are as long as text that is composed, and 64 kB.
func hostileTexts() map[string]string {
	texts := map[string]string{}
	for size, name := range map[int]string{maxFold - 1: "1 kB", 64 << 10: "64 kB"} {
		repeat := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
		texts[name+" of marks"] = "a" + repeat("\u0301")
		texts[name+" of marks in the wrong order"] = "a" + repeat("\u0323\u0301")
		texts[name+" of Korean"] = repeat("\u1112\u1161\u11ab")
		texts[name+" of capitals"] = repeat("É")
		texts[name+" of what grows"] = repeat("\u1e9e\u0390\u0345")
		texts[name+" of ASCII"] = repeat("A")
		texts[name+" of what is not UTF-8"] = repeat("A\xff")
	}
	return texts
}

func TestFoldHostileTexts(t *testing.T) {
	t.Parallel()
	for name, text := range hostileTexts() {
		once := Fold(text)
		if len(once) > 3*len(text) {
			t.Errorf("%s: %d bytes become %d", name, len(text), len(once))
		}
		if Fold(once) != once {
			t.Errorf("%s: folding it twice changes it twice", name)
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add(" User@Example.COM ")
	f.Add("I\u0307\u0345\u0390 ẞ")
	f.Add("A\xff\u0300")
	f.Add("a" + strings.Repeat("\u0301", 40))
	f.Fuzz(func(t *testing.T, text string) {
		once := Fold(text)
		if twice := Fold(once); twice != once {
			t.Fatalf("%q becomes %q, and that %q", text, once, twice)
		}
		if utf8.ValidString(text) != utf8.ValidString(once) {
			t.Fatalf("%q becomes %q", text, once)
		}
	})
}

func BenchmarkFold(b *testing.B) {
	cases := hostileTexts()
	cases["small"], cases["small capitals"], cases["small Chinese"] = "u-17@example.com", "U-17@Example.com", "李雷"
	for name, text := range cases {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Fold(text)
			}
		})
	}
}
