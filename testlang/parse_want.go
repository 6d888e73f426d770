package testlang

import (
	"net/netip"
	"slices"
	"strconv"

	headgate "github.com/headgate-io/headgate"
)

// vocabulary is what a kind of line can expect.
type vocabulary struct {
	words  []string
	fields []string
	// say is the same for a person.
	say string
}

func vocabularyOf(a Action) vocabulary {
	switch a.(type) {
	case Take:
		return vocabulary{
			[]string{"allow", "deny"},
			[]string{"allowed", "error", "remaining", "retry_after", "reset_after", "wait", "by"},
			"allow or deny, error=CODE or allowed=N, and remaining=, retry_after=, reset_after=, wait=, by=",
		}
	case Renew:
		return vocabulary{[]string{"ok", "gone"}, []string{"error"}, "ok, gone or error=CODE"}
	case Request:
		return vocabulary{
			[]string{"allow", "deny", "challenge"},
			[]string{"allowed", "error", "remaining", "retry_after", "reset_after", "wait", "by", "status", "ip", "over", "shadow", "stale"},
			"allow, deny or challenge, error=CODE or allowed=N, and remaining=, retry_after=, reset_after=, wait=, by=, status=, ip=, over=, shadow=, stale=",
		}
	}
	return vocabulary{[]string{"ok"}, []string{"error"}, "ok or error=CODE"}
}

// wantOf reads the words after the arrow.
func wantOf(a Action, words []word) (Want, error) {
	known := vocabularyOf(a)
	if len(words) == 0 {
		if _, reload := a.(Reload); reload {
			return Want{Word: "ok"}, nil
		}
		return Want{}, faultf(1, "nothing is expected: end the line with -> and %s", known.say)
	}
	var want Want
	for _, w := range words {
		if err := want.add(known, w); err != nil {
			return Want{}, err
		}
	}
	if (want.Word == "allowed" || want.Word == "error") && len(want.Fields) > 0 {
		return Want{}, faultf(words[0].column, "%s= stands alone: check %s= on a line of its own", want.Word, want.Fields[0].Name)
	}
	return want, nil
}

func (want *Want) add(known vocabulary, w word) error {
	name, value, ok := w.option()
	if !ok {
		name = w.plain
	}
	verdict := !ok && slices.Contains(known.words, name)
	if !verdict && (!ok || !slices.Contains(known.fields, name)) {
		return faultf(w.column, "%q cannot be expected of this line: write %s", w.raw, known.say)
	}
	if verdict || name == "allowed" || name == "error" {
		if want.Word != "" {
			return faultf(w.column, "%s after %s: expect one of them", name, want.Word)
		}
		want.Word = name
		return want.argument(w, name, value)
	}
	for _, f := range want.Fields {
		if f.Name == name {
			return faultf(w.column, "%s= stands twice", name)
		}
	}
	value, err := canonical(w, name, value)
	want.Fields = append(want.Fields, Field{name, value})
	return err
}

// argument reads the value of allowed= and error=.
func (want *Want) argument(w word, name, value string) (err error) {
	switch name {
	case "error":
		if want.Code = headgate.Code(value); value == "" {
			return faultf(w.column, "error= needs a code, as in error=invalid_cost")
		}
	case "allowed":
		if want.Allowed, err = strconv.ParseInt(value, 10, 64); err != nil || want.Allowed < 0 {
			return faultf(w.column, "allowed=%s is not a count: write one as in allowed=5", value)
		}
	}
	return nil
}

// canonical returns a value in the form in which answers are shown.
func canonical(w word, name, value string) (string, error) {
	switch name {
	case "remaining", "status":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return "", faultf(w.column, "%s=%s is not a whole number", name, value)
		}
		return strconv.FormatInt(n, 10), nil
	case "ip":
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return "", faultf(w.column, "ip=%s is not an address", value)
		}
		return addr.String(), nil
	case "retry_after":
		if value == "never" || value == "unknown" {
			return value, nil
		}
		fallthrough
	case "reset_after", "wait":
		d, err := offset(w.column, value)
		return d.String(), err
	}
	return value, nil
}
