package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestJSONOrdersNothing: what others have written does nothing to a terminal, and is the same to a program.
func TestJSONOrdersNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"eve":                     `{"user":"eve"}`,
		"小明 <e&v>\u3000x":         "{\"user\":\"小明 <e&v>\u3000x\"}",
		"\x1b[2J\n":               `{"user":"\u001b[2J\n"}`,
		"\u009b2J\u009d0;x\u009c": `{"user":"\u009b2J\u009d0;x\u009c"}`,
		"\x7f\u202edrawer\u200b":  `{"user":"\u007f\u202edrawer\u200b"}`,
		"\U000e0041😀":             `{"user":"\udb40\udc41😀"}`,
	} {
		var out bytes.Buffer
		if err := printJSON(streams{out: &out}, map[string]string{"user": text}); err != nil || out.String() != want+"\n" {
			t.Errorf("%q: %q, %v; want %q", text, out.String(), err, want)
		}
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["user"] != text {
			t.Errorf("%q is read as %q, %v", text, back["user"], err)
		}
	}
}
