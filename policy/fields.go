package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// maxText bounds one value of the document.
const maxText = 4096

// fields returns the fields of a mapping by name, and reports the unknown, the empty and the doubled, and those that are
// required and not there.
func (s scope) fields(n *node, m mapping) map[string]*node {
	if n.kind != kindMapping {
		s.fail(n.pos, "must be a mapping with %s, not %s", few(m.names()), n.describe())
		return nil
	}
	out := make(map[string]*node, len(n.fields))
	for _, f := range n.fields {
		switch {
		case !m.has(f.name):
			s.fail(f.pos, "field %q is unknown; nearest is %s", clip(f.name, 60), s.nearest(f.name, m.names()))
		case out[f.name] != nil:
			s.fail(f.pos, "field %s is given twice; keep one", f.name)
		case f.value.kind == kindNull:
			s.fail(f.pos, "field %s has no value; give it one or remove it", f.name)
		default:
			out[f.name] = f.value
		}
	}
	return out
}

// few names the first of many.
func few(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// entries returns the fields of a mapping whose names are the author's, and reports doubled and badly formed names.
func (s scope) entries(n *node, what string, most int) []field {
	if n.kind != kindMapping {
		s.fail(n.pos, "must be a mapping from names to %ss, not %s", what, n.describe())
		return nil
	}
	if len(n.fields) > most {
		s.fail(n.pos, "has %d entries; %d are allowed", len(n.fields), most)
		return nil
	}
	var out []field
	seen := make(map[string]bool, len(n.fields))
	for _, f := range n.fields {
		switch {
		case !validName(f.name):
			s.fail(f.pos, "%s %s", f.name, nameRule)
		case seen[f.name]:
			s.fail(f.pos, "%s %q is defined twice; rename one", what, f.name)
		default:
			seen[f.name] = true
			out = append(out, f)
		}
	}
	return out
}

const nameRule = "is not a name; a name has 1 to 64 letters, digits, '.', '_' or '-' and begins with a letter or digit"

func validName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && (i == 0 || (c != '.' && c != '_' && c != '-')) {
			return false
		}
	}
	return true
}

// text reads a single value that is not empty.
func (s scope) text(n *node, name string) (string, bool) {
	switch {
	case n == nil:
		return "", false
	case n.kind != kindScalar:
		s.fail(n.pos, "%s must be a single value, not %s", name, n.describe())
		return "", false
	case n.text == "":
		s.fail(n.pos, "%s is empty", name)
		return "", false
	case len(n.text) > maxText:
		s.fail(n.pos, "%s has %d bytes; %d are allowed", name, len(n.text), maxText)
		return "", false
	}
	return n.text, true
}

// list returns the items of a list.
func (s scope) list(n *node, name string, most int) []*node {
	switch {
	case n == nil:
		return nil
	case n.kind == kindScalar:
		s.fail(n.pos, "%s must be a list; write %s: [%s]", name, name, clip(n.text, 60))
		return nil
	case n.kind != kindSequence:
		s.fail(n.pos, "%s must be a list, not %s", name, n.describe())
		return nil
	case len(n.items) > most:
		s.fail(n.pos, "%s has %d entries; %d are allowed", name, len(n.items), most)
		return nil
	}
	return n.items
}

// oneOf reads a word out of a few. Absent or wrong, it is the first.
func (s scope) oneOf(n *node, name string, words ...string) string {
	text, ok := s.text(n, name)
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, text) {
		s.fail(n.pos, "%s %q is unknown; nearest is %s", name, clip(text, 60), s.nearest(text, words))
		return words[0]
	}
	return text
}

func (s scope) boolean(n *node, name string) bool {
	text, ok := s.text(n, name)
	if !ok {
		return false
	}
	if n.quoted || (text != "true" && text != "false") {
		s.fail(n.pos, "%s must be true or false, not %s", name, n.describe())
		return false
	}
	return text == "true"
}

// integer reads a whole number. Absent or wrong, it is absent.
func (s scope) integer(n *node, name string, absent, least, most int64) int64 {
	text, ok := s.text(n, name)
	if !ok {
		return absent
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.fail(n.pos, "%s must be a whole number in plain digits, not %s", name, n.describe())
		return absent
	}
	if v < least || v > most {
		s.fail(n.pos, "%s %d is outside %d to %d; nearest is %d", name, v, least, most, min(max(v, least), most))
		return absent
	}
	return v
}

// percent reads 0% to 100% as a fraction.
func (s scope) percent(n *node, name string) float64 {
	text, ok := s.text(n, name)
	if !ok {
		return 0
	}
	digits, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if !isPercent || err != nil || !(v >= 0 && v <= 100) {
		s.fail(n.pos, "%s must be a percentage from 0%% to 100%%, not %s", name, n.describe())
		return 0
	}
	return v / 100
}

// duration reads a period from 1us to 36500d, such as 30s, 1h30m or 7d. Absent or wrong, it is 0.
func (s scope) duration(n *node, name string) time.Duration {
	text, ok := s.text(n, name)
	if !ok {
		return 0
	}
	d, ok := parseDuration(text)
	if !ok {
		s.fail(n.pos, "%s must be a duration such as 30s, 1h30m or 7d, not %s", name, n.describe())
		return 0
	}
	if d < time.Microsecond || d > headgate.MaxPeriod || d%time.Microsecond != 0 {
		s.fail(n.pos, "%s %s is not a whole number of microseconds from 1us to 36500d", name, text)
		return 0
	}
	return d
}

// durationIn is duration within bounds, or a default if the field is absent.
func (s scope) durationIn(n *node, name string, absent, least, most time.Duration) time.Duration {
	if n == nil {
		return absent
	}
	d := s.duration(n, name)
	if d != 0 && (d < least || d > most) {
		s.fail(n.pos, "%s %s is outside %s to %s; nearest is %s", name, n.text, brief(least), brief(most), brief(min(max(d, least), most)))
	}
	return d
}

// brief writes a duration without parts that are 0: 1h for 1h0m0s.
func brief(d time.Duration) string {
	text := d.String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}

func parseDuration(text string) (time.Duration, bool) {
	switch text {
	case "s", "m", "h", "d":
		text = "1" + text
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil || n < 0 || n > int64(headgate.MaxPeriod/(24*time.Hour)) {
			return 0, false
		}
		return time.Duration(n) * 24 * time.Hour, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}
