package credential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func nest(open, inner, shut string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(shut, depth)
}

func TestField(t *testing.T) {
	t.Parallel()
	const missing = "\x00" // no value can be this
	for _, c := range []struct{ name, body, path, want string }{
		{"a string", `{"phone":"138"}`, "phone", "138"},
		{"space everywhere", " \t\r\n{ \"a\" : [ 1 , { } , [ ] ] , \"phone\" :\n\"138\" } \n", "phone", "138"},
		{"a field of a field", `{"x":{"user":{"phone":"0"}},"user":{"phone":"138"}}`, "user.phone", "138"},
		{"a whole number", `{"phone":13800000000}`, "phone", "13800000000"},
		{"zero", `{"phone":0}`, "phone", "0"},
		{"a negative number", `{"phone":-17}`, "phone", "-17"},
		{"true", `{"phone":true}`, "phone", "true"},
		{"false", `{"phone":false}`, "phone", "false"},
		{"escapes", `{"phone":"\"\\\/\b\f\n\r\t\u0041\u00e9\u4e2d\ud83d\ude00"}`, "phone", "\"\\/\b\f\n\r\tAé中😀"},
		{"upper case digits of an escape", `{"phone":"\u00E9\uD83D\uDE00"}`, "phone", "é😀"},
		{"not escaped", `{"phone":"é中😀` + "\u007f\ufeff" + `"}`, "phone", "é中😀\u007f\ufeff"},
		{"an escaped key", `{"\u0070h\u006fne":"138"}`, "phone", "138"},
		{"a key of another script", `{"手机":"138"}`, "手机", "138"},
		{"an empty key in the path", `{"":{"a":"1"}}`, ".a", "1"},
		{"the same key elsewhere", `{"a":{"phone":1},"b":[{"phone":2},{"phone":3}],"phone":"138"}`, "phone", "138"},
		{"case off the path", `{"phone":"138","x":{"a":1,"A":2},"b":1,"B":2}`, "phone", "138"},
		{"the largest of 64 bits", `{"n":18446744073709551615}`, "n", "18446744073709551615"},
		{"the smallest of 64 bits", `{"n":-9223372036854775808}`, "n", "-9223372036854775808"},
		{"any number elsewhere", `{"x":[-0,1.5,-1.5e+10,2E-3,1e999,0.0,0e1,123456789012345678901234567890],"n":1}`, "n", "1"},
		{"as deep as may be", `{"n":1,"x":` + nest("[", "", "]", 31) + `}`, "n", "1"},
		{"as deep as may be, after", `{"x":` + nest(`{"x":`, "1", "}", 31) + `,"n":1}`, "n", "1"},

		{"absent", `{"a":"1"}`, "phone", missing},
		{"absent in a field", `{"user":{}}`, "user.phone", missing},
		{"empty", `{"phone":""}`, "phone", missing},
		{"null", `{"phone":null}`, "phone", missing},
		{"an object", `{"phone":{}}`, "phone", missing},
		{"an object with fields", `{"phone":{"phone":"138"}}`, "phone", missing},
		{"an array", `{"phone":["138"]}`, "phone", missing},
		{"an array on the way", `{"user":[{"phone":"138"}]}`, "user.phone", missing},
		{"an index is no key", `{"user":["138"]}`, "user.0", missing},
		{"a scalar on the way", `{"user":"138"}`, "user.phone", missing},
		{"null on the way", `{"user":null}`, "user.phone", missing},
		{"an array around it all", `[{"phone":"138"}]`, "phone", missing},
		{"a scalar alone", `"138"`, "phone", missing},
		{"another case", `{"Phone":"138"}`, "phone", missing},

		{"a fraction", `{"n":1.0}`, "n", missing},
		{"an exponent", `{"n":1e3}`, "n", missing},
		{"a large exponent", `{"n":1E400}`, "n", missing},
		{"minus zero", `{"n":-0}`, "n", missing},
		{"over 64 bits", `{"n":18446744073709551616}`, "n", missing},
		{"under 64 bits", `{"n":-9223372036854775809}`, "n", missing},
		{"a huge number", `{"n":1` + strings.Repeat("0", 5000) + `}`, "n", missing},
		{"a leading zero", `{"n":01}`, "n", missing},
		{"a plus", `{"n":+1}`, "n", missing},
		{"a point first", `{"n":.5}`, "n", missing},
		{"a point last", `{"n":1,"x":5.}`, "n", missing},
		{"a sign alone", `{"n":1,"x":-}`, "n", missing},
		{"an exponent without digits", `{"n":1,"x":1e}`, "n", missing},
		{"an exponent with a sign alone", `{"n":1,"x":1e+}`, "n", missing},
		{"hexadecimal", `{"n":0x10}`, "n", missing},
		{"NaN", `{"n":1,"x":NaN}`, "n", missing},
		{"Infinity", `{"n":1,"x":Infinity}`, "n", missing},
		{"minus Infinity", `{"n":1,"x":-Infinity}`, "n", missing},
		{"another word", `{"n":1,"x":nul}`, "n", missing},
		{"a word with more", `{"n":1,"x":nulls}`, "n", missing},
		{"a word in capitals", `{"n":True}`, "n", missing},

		{"twice", `{"phone":"1","phone":"2"}`, "phone", missing},
		{"twice the same", `{"phone":"1","phone":"1"}`, "phone", missing},
		{"twice, once escaped", `{"phone":"1","\u0070hone":"2"}`, "phone", missing},
		{"twice by surrogates", `{"n":"1","x":{"😀":1,"\ud83d\uDE00":2}}`, "n", missing},
		{"twice by a slash", `{"n":"1","a/b":1,"a\/b":2}`, "n", missing},
		{"twice elsewhere", `{"phone":"1","x":[{"a":{"b":1,"c":2,"b":3}}]}`, "phone", missing},
		{"twice before", `{"x":{"a":1,"a":2},"phone":"1"}`, "phone", missing},
		{"twice the empty key", `{"n":"1","":1,"":2}`, "n", missing},
		{"twice on the way", `{"user":{"phone":"1"},"user":{}}`, "user.phone", missing},
		{"twice among many", `{"n":1,` + manyKeys(5000) + `,"k17":1}`, "n", missing},
		{"twice by case", `{"phone":"1","PHONE":"2"}`, "phone", missing},
		{"twice by case, the other first", `{"pHone":"2","phone":"1"}`, "phone", missing},
		{"twice by case, neither it", `{"PHONE":"2","Phone":"1"}`, "phone", missing},
		{"twice by case, escaped", `{"phone":"1","\u0050hone":"2"}`, "phone", missing},
		{"twice by the long s", `{"sms":"1","ſms":"2"}`, "sms", missing},
		{"twice by the sign of Kelvin", `{"key":"1","\u212aey":"2"}`, "key", missing},
		{"twice by case on the way", `{"user":{"phone":"1"},"USER":{"phone":"2"}}`, "user.phone", missing},
		{"twice by case below the way", `{"user":{"phone":"1","Phone":null}}`, "user.phone", missing},

		{"no bytes", ``, "phone", missing},
		{"space alone", " \n", "phone", missing},
		{"a byte order mark", "\ufeff" + `{"phone":"1"}`, "phone", missing},
		{"something behind", `{"phone":"1"} x`, "phone", missing},
		{"a document behind", `{"phone":"1"}{"phone":"2"}`, "phone", missing},
		{"a line end that is none", "{\"phone\":\"1\"}\u2028", "phone", missing},
		{"a vertical tab", "{\"phone\":\v\"1\"}", "phone", missing},
		{"a comma last", `{"phone":"1",}`, "phone", missing},
		{"a comma first", `{,"phone":"1"}`, "phone", missing},
		{"two commas", `{"phone":"1",,"x":1}`, "phone", missing},
		{"a comma last in an array", `{"phone":"1","x":[1,]}`, "phone", missing},
		{"no comma", `{"phone":"1" "x":1}`, "phone", missing},
		{"no colon", `{"phone" "1"}`, "phone", missing},
		{"a key alone", `{"phone":"1","x"}`, "phone", missing},
		{"a key without quotes", `{phone:"1"}`, "phone", missing},
		{"a number for a key", `{1:1,"phone":"1"}`, "phone", missing},
		{"single quotes", `{'phone':'1'}`, "phone", missing},
		{"a comment", `{"phone":"1"/* */}`, "phone", missing},
		{"closed by the other bracket", `{"phone":"1","x":[1}]`, "phone", missing},
		{"closed once too often", `{"phone":"1"}}`, "phone", missing},
		{"not closed", `{"phone":"1"`, "phone", missing},
		{"a string that is not closed", `{"phone":"1`, "phone", missing},
		{"a backslash at the end", `{"phone":"1\`, "phone", missing},
		{"an escape cut off", `{"phone":"\u00`, "phone", missing},
		{"too deep", `{"n":1,"x":` + nest("[", "", "]", 32) + `}`, "n", missing},
		{"much too deep", `{"n":1,"x":` + nest("[", "", "]", 30000) + `}`, "n", missing},
		{"too deep by objects", `{"n":1,"x":` + nest(`{"x":`, "1", "}", 32) + `}`, "n", missing},

		{"bytes that are not UTF-8", "{\"phone\":\"1\",\"x\":\"\xff\"}", "phone", missing},
		{"an overlong form", "{\"phone\":\"\xc0\xb1\"}", "phone", missing},
		{"a surrogate in bytes", "{\"phone\":\"\xed\xa0\x80\"}", "phone", missing},
		{"half a pair", `{"phone":"\ud83d"}`, "phone", missing},
		{"half a pair and a letter", `{"phone":"\ud83dx\ude00"}`, "phone", missing},
		{"the second half alone", `{"phone":"\ude00"}`, "phone", missing},
		{"two second halves", `{"phone":"\ude00\ude00"}`, "phone", missing},
		{"half a pair and an escaped letter", `{"phone":"\ud83d\u0041"}`, "phone", missing},
		{"half a pair and another character", `{"phone":"\ud83d\uffff"}`, "phone", missing},
		{"two first halves", `{"phone":"\ud83d\ud83d\ude00"}`, "phone", missing},
		{"half a pair elsewhere", `{"phone":"1","x":"\ud83d"}`, "phone", missing},
		{"half a pair in a key", `{"phone":"1","\ud83d":1}`, "phone", missing},
		{"NUL", `{"phone":"1\u0000"}`, "phone", missing},
		{"NUL elsewhere", `{"phone":"1","x\u0000":1}`, "phone", missing},
		{"a NUL byte", "{\"phone\":\"1\x00\"}", "phone", missing},
		{"a line end in a string", "{\"phone\":\"1\n\"}", "phone", missing},
		{"a tab in a string", "{\"phone\":\"1\t\"}", "phone", missing},
		{"an unknown escape", `{"phone":"\x31"}`, "phone", missing},
		{"an escape of three digits", `{"phone":"\u003"}`, "phone", missing},
		{"an escape with another letter", `{"phone":"\u00g1"}`, "phone", missing},
		{"an escape with a capital U", `{"phone":"\U0031"}`, "phone", missing},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			value, ok := Field([]byte(c.body), strings.Split(c.path, "."))
			if !ok {
				value += missing
			}
			if value != c.want {
				t.Errorf("found %q, want %q", value, c.want)
			}
		})
	}
	if value, ok := Field([]byte(`"1"`), nil); ok || value != "" {
		t.Errorf("no path leads to %q", value)
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func TestFieldLeavesTheBodyAlone(t *testing.T) {
	t.Parallel()
	body := []byte(`{"\u0061":{"phone":"\u0031\u0032"}}`)
	before := bytes.Clone(body)
	value, ok := Field(body, []string{"a", "phone"})
	if !ok || value != "12" || !bytes.Equal(body, before) {
		t.Fatalf("found %q, body %s", value, body)
	}
	clear(body)
	if value != "12" {
		t.Errorf("the value is %q after the body is gone", value)
	}
}

func TestFieldAllocatesOnlyTheValue(t *testing.T) {
	body, path := []byte(smallBody), []string{"user", "phone"}
	got := testing.AllocsPerRun(100, func() {
		if _, ok := Field(body, path); !ok {
			t.Error("missing")
		}
	})
	if got > 1 {
		t.Errorf("%v allocations, want at most 1", got)
	}
}

const smallBody = `{"order":{"id":81723,"items":[{"sku":"a-1","count":2},{"sku":"b-7","count":1}]},"user":{"name":"李雷","phone":"13800000000"},"agree":true}`

// hostileBodies are 64 kB each.
func hostileBodies() map[string][]byte {
	const size = 64 << 10
	fill := func(head, unit, tail string) []byte {
		return []byte(head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail)
	}
	var distinct, falling strings.Builder
	for i := 0; distinct.Len() < size-32; i++ {
		fmt.Fprintf(&distinct, `"%x":0,`, i)
	}
	for i := 99999; falling.Len() < size-32; i-- {
		fmt.Fprintf(&falling, `"%d":0,`, i)
	}
	return map[string][]byte{
		"distinct keys":  []byte(`{` + distinct.String() + `"n":1}`),
		"falling keys":   []byte(`{` + falling.String() + `"n":1}`),
		"small objects":  fill(`{"n":1,"x":[`, `{"a":1},`, `0]}`),
		"escaped keys":   fill(`{"n":1,"x":[`, `{"\u0061\u0062":1},`, `0]}`),
		"one escaped":    fill(`{"n":1,"x":"`, `\ud83d\ude00`, `"}`),
		"one long key":   fill(`{"n":1,"`, `\u0061`, `":1}`),
		"digits":         fill(`{"n":1,"x":`, `7`, `}`),
		"space":          fill(`{"n":1`, ` `, `}`),
		"deep and broad": fill(`{"n":1,"x":[`, nest("[", "0", "]", 30)+",", `0]}`),
	}
}

func TestFieldReadsHostileBodies(t *testing.T) {
	t.Parallel()
	for name, body := range hostileBodies() {
		if value, ok := Field(body, []string{"n"}); value != "1" || !ok {
			t.Errorf("%s: found %q, %v", name, value, ok)
		}
	}
}

func FuzzField(f *testing.F) {
	f.Add([]byte(smallBody), "user.phone")
	f.Add([]byte(`{"a":{"b":-12}}`), "a.b")
	f.Add([]byte(`{"\ud83d\ude00":"x","a":[1.5e3,null]}`), "😀")
	f.Add([]byte(`{"a":1,"A":2}`), "a")
	f.Add([]byte(`{"a":1,"\u0061":2}`), "a")
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		keys := strings.Split(path, ".")
		value, ok := Field(body, keys)
		again, okAgain := Field(body, keys)
		if value != again || ok != okAgain {
			t.Fatalf("%q, %v and then %q, %v", value, ok, again, okAgain)
		}
		if ok {
			agree(t, body, keys, value)
		} else if value != "" {
			t.Fatalf("missing, with the value %q", value)
		}
	})
}

// agree checks that the standard library finds the same.
func agree(t *testing.T, body []byte, keys []string, value string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var found any
	if err := decoder.Decode(&found); err != nil || !json.Valid(body) {
		t.Fatalf("found %q in what is no JSON: %v", value, err)
	}
	for _, key := range keys {
		object, ok := found.(map[string]any)
		if !ok {
			t.Fatalf("found %q where there is no object", value)
		}
		found = object[key]
	}
	if text := fmt.Sprint(found); text != value {
		t.Fatalf("found %q, and the standard library %q", value, text)
	}
}

// FuzzValidJSON holds what is good against the standard library's reader and a check of its tokens.
func FuzzValidJSON(f *testing.F) {
	f.Add([]byte(smallBody))
	f.Add([]byte(`[1,-0.5e+3,"\u0041",{"a":null}]`))
	f.Add([]byte(`{"a":tru}`))
	f.Add([]byte(`[{"a":1,"b":{"a":1}},{"a":2,"\u0061":3}]`))
	f.Add([]byte(nest("[", "", "]", maxDepth+1)))
	f.Add([]byte(`{"a":"\u0000"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		mine := validJSON(data)
		if !mine && bytes.Contains(bytes.ToLower(data), []byte(`\ud`)) {
			return // it may have half a pair, which the standard library replaces
		}
		if theirs := json.Valid(data) && utf8.Valid(data) && goodTokens(data); mine != theirs {
			t.Fatalf("good %v, want %v", mine, theirs)
		}
	})
}

// goodTokens looks for keys that are there twice, for depth and for NUL.
func goodTokens(data []byte) bool {
	type level struct {
		keys  map[string]bool // nil in an array
		value bool            // a key was read, and its value comes
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var open []level
	for {
		found, err := decoder.Token()
		if err != nil {
			return err == io.EOF
		}
		if text, ok := found.(string); ok && strings.Contains(text, "\x00") {
			return false
		}
		if found == json.Delim('}') || found == json.Delim(']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 && open[n-1].keys != nil {
			top := &open[n-1]
			top.value = !top.value
			if key, _ := found.(string); top.value {
				if top.keys[key] {
					return false
				}
				top.keys[key] = true
				continue
			}
		}
		switch found {
		case json.Delim('{'):
			open = append(open, level{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
		if len(open) > maxDepth {
			return false
		}
	}
}

func BenchmarkField(b *testing.B) {
	path := []string{"user", "phone"}
	body := []byte(smallBody)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Field(body, path)
	}
}

func BenchmarkFieldHostile(b *testing.B) {
	for name, body := range hostileBodies() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Field(body, []string{"n"})
			}
		})
	}
}
