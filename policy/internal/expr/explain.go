package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"

	"github.com/headgate-io/headgate/policy/internal/spelling"
)

// explain makes one error of what the library found: the first that is not the consequence of another, in the words of a
// policy.
func (l *language) explain(text string, issues []*cel.Error) *Error {
	slices.SortStableFunc(issues, func(a, b *cel.Error) int {
		if d := a.Location.Line() - b.Location.Line(); d != 0 {
			return d
		}
		return a.Location.Column() - b.Location.Column()
	})
	first := issues[0]
	for _, issue := range issues {
		if !strings.Contains(issue.Message, "!error!") {
			first = issue
			break
		}
	}
	s := spot{text: []rune(text), at: Place{max(first.Location.Line(), 1), max(first.Location.Column()+1, 1)}}
	message := strings.TrimPrefix(first.Message, "Syntax error: ")
	for _, translate := range []func(*spot, string) string{l.undeclared, l.overload, mistyped, syntax} {
		if m := translate(&s, message); m != "" {
			return errorAt(s.at, "%s", m)
		}
	}
	return errorAt(s.at, "%s", clip(message))
}

// spot is a place in a text.
type spot struct {
	text []rune
	at   Place
}

// offset returns the index of the place in the text.
func (s *spot) offset() int {
	line := 1
	for i, r := range s.text {
		if line == s.at.Line {
			return min(i+s.at.Column-1, len(s.text))
		}
		if r == '\n' {
			line++
		}
	}
	return len(s.text)
}

// toStart moves to where the name begins that the library points into: it points at the dot of request.path, and at the
// parenthesis of size(x).
func (s *spot) toStart() {
	i := s.offset()
	if i == len(s.text) || s.text[i] != '.' && s.text[i] != '(' {
		return
	}
	dots := s.text[i] == '.'
	for i > 0 && isNameRune(s.text[i-1]) && (dots || s.text[i-1] != '.') {
		i--
		s.at.Column--
	}
}

// before and after are the text around the place.
func (s *spot) before() string { return string(s.text[:s.offset()]) }
func (s *spot) after() string  { return string(s.text[s.offset():]) }

func isNameRune(r rune) bool {
	return r == '_' || r == '.' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// undeclared explains a name that there is not.
func (l *language) undeclared(s *spot, message string) string {
	name, ok := between(message, "undeclared reference to '", "'")
	if !ok {
		return ""
	}
	s.toStart()
	prefix, _, _ := strings.Cut(name, ".")
	rest, _ := strings.CutPrefix(s.after(), name)
	before := s.before()
	switch {
	case strings.HasSuffix(before, "-") && endsInEntry(strings.TrimSuffix(before, "-")):
		return fmt.Sprintf(`a name with "-" stands in brackets, such as dim["user-%s"]`, name)
	case slices.Contains(macros(), name):
		return "this is not how it is written: " + macroUsage(name)
	case strings.HasPrefix(strings.TrimLeft(rest, " "), "("):
		return name + " is unknown" + l.nearest(name)
	case strings.HasSuffix(before, "has("):
		return macroUsage("has") + "; compare others with '' or 0"
	case name == "request" || name == "response":
		return fmt.Sprintf("%s stands only before a dot: %s", name, strings.Join(l.below(name), ", "))
	case prefix == "request" || prefix == "response":
		return fmt.Sprintf("%s is unknown%s", name, cmp.Or(l.nearest(name), "; there are "+strings.Join(l.below(prefix), ", ")))
	}
	return name + " is unknown" + cmp.Or(l.nearest(name), "; a dimension is dim."+name+", and a text stands in quotes")
}

func macroUsage(name string) string {
	switch name {
	case "has":
		return "has takes an entry, such as has(dim.tier)"
	case "map":
		return "list.map(item, value)"
	}
	return fmt.Sprintf("list.%s(item, condition)", name)
}

// endsInEntry tells whether a text ends in such as dim.user or request.headers.x.
func endsInEntry(text string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return !isNameRune(r) })
	if len(words) == 0 || !strings.HasSuffix(text, words[len(words)-1]) {
		return false
	}
	last := words[len(words)-1]
	for _, f := range fields() {
		if f.isMap() && strings.HasPrefix(last, f.name+".") {
			return true
		}
	}
	return false
}

// below returns the fields of request or response.
func (l *language) below(prefix string) (names []string) {
	for name := range l.fields {
		if strings.HasPrefix(name, prefix+".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// overload explains an operator or function that does not go with what it is applied to.
func (l *language) overload(s *spot, message string) string {
	name, ok := between(message, "found no matching overload for '", "'")
	if !ok {
		return ""
	}
	s.toStart()
	got, _ := between(message, "applied to '", "'")
	usage, known := l.usages[name]
	symbol, operator := l.symbols[name]
	types := strings.Split(strings.Trim(got, "()"), ", ")
	switch {
	case name == operators.Conditional && len(types) == 3 && types[0] != "bool":
		return "what stands before ? is true or false, and here it is " + wordOf(types[0])
	case name == operators.Conditional && len(types) == 3:
		return fmt.Sprintf("what follows ? and : is of one type, and here it is %s and %s", wordOf(types[1]), wordOf(types[2]))
	case operator && len(types) == 2:
		return fmt.Sprintf("%s does not go with %s and %s%s", symbol, wordOf(types[0]), wordOf(types[1]), numberHint(types))
	case operator:
		return fmt.Sprintf("%s does not go with %s", symbol, wordOf(types[0]))
	case known:
		return fmt.Sprintf("%s is not for %s; it is written %s", name, wordsOf(got), usage)
	}
	return fmt.Sprintf("%s is not part of this language%s", name, l.nearest(name))
}

func numberHint(types []string) string {
	if slices.Contains(types, "string") && slices.Contains(types, "int") {
		return "; int(…) makes a whole number of a text"
	}
	return ""
}

// mistyped explains a type in the wrong place.
func mistyped(s *spot, message string) string {
	if t, ok := between(message, "type '", "' does not support field selection"); ok {
		return fmt.Sprintf("%s has no fields", wordOf(t))
	}
	if t, ok := between(message, "expression of type '", "' cannot be range of a comprehension"); ok {
		s.toStart()
		return fmt.Sprintf("all, exists, map and filter go through a list, such as text.split(','), and this is %s", wordOf(t))
	}
	want, ok := between(message, "expected type '", "'")
	got, also := between(message, "but found '", "'")
	if !ok || !also {
		return ""
	}
	s.toStart()
	return fmt.Sprintf("%s is needed here, and this is %s", wordOf(want), wordOf(got))
}

// syntax explains what the parser stumbled over.
func syntax(s *spot, message string) string {
	if token, ok := between(message, "token recognition error at: '", "'"); ok || strings.HasPrefix(message, "token recognition") {
		return unreadable(strings.TrimSpace(token), s)
	}
	if token, ok := between(message, "missing '", "' at"); ok {
		return token + " is missing before this"
	}
	for _, start := range []string{"mismatched input '", "extraneous input '", "no viable alternative at input '"} {
		if token, ok := between(message, start, "'"); ok {
			return unexpected(token)
		}
	}
	switch {
	case strings.HasPrefix(message, "invalid int literal"):
		return "a whole number is from -9223372036854775808 to 9223372036854775807"
	case strings.HasPrefix(message, "reserved identifier: "):
		return strings.TrimPrefix(message, "reserved identifier: ") + " is a reserved word"
	case strings.Contains(message, "recursion"):
		return fmt.Sprintf("more than %d parts are nested, or stand in a row", maxDepth)
	case strings.HasPrefix(message, "invalid argument to has()"):
		return macroUsage("has")
	}
	return ""
}

func unreadable(token string, s *spot) string {
	if i := s.offset(); token == "" && i < len(s.text) {
		token = string(s.text[i])
	}
	switch {
	case strings.HasPrefix(token, `"`) || strings.HasPrefix(token, "'"):
		return "the text in quotes does not end, or has an unknown escape"
	case strings.HasPrefix(token, "="):
		return "= is no operator; == compares"
	case strings.HasPrefix(token, "&"):
		return "& is no operator; && is and"
	case strings.HasPrefix(token, "|"):
		return "| is no operator; || is or"
	}
	return fmt.Sprintf("%s has no meaning here", clip(token))
}

func unexpected(token string) string {
	switch token {
	case "<EOF>":
		return "the expression ends too early"
	case "and", "AND":
		return token + " is no operator; && is"
	case "or", "OR":
		return token + " is no operator; || is"
	case "not", "NOT":
		return token + " is no operator; ! is"
	}
	return clip(token) + " is not expected here"
}

// between returns what stands between two texts.
func between(text, start, end string) (string, bool) {
	_, rest, ok := strings.Cut(text, start)
	if !ok {
		return "", false
	}
	return cut(rest, end)
}

func cut(text, end string) (string, bool) {
	before, _, ok := strings.Cut(text, end)
	return before, ok
}

// word names a type.
func word(t *cel.Type) string { return wordOf(cel.FormatCELType(t)) }

func wordOf(t string) string {
	switch t {
	case "string":
		return "a text"
	case "int":
		return "a whole number"
	case "uint", "double":
		return "a number of type " + t
	case "bool":
		return "true or false"
	case "google.protobuf.Timestamp", "timestamp":
		return "a time"
	case "google.protobuf.Duration", "duration":
		return "a duration"
	}
	switch {
	case strings.HasPrefix(t, "list("):
		return "a list"
	case strings.HasPrefix(t, "map("):
		return "a map"
	}
	return "a value of type " + clip(t)
}

// wordsOf names the types that a function was applied to: "string.(int)" or "(string, int)".
func wordsOf(got string) string {
	target, args, member := strings.Cut(got, ".(")
	if !member {
		target, args = "", strings.TrimPrefix(got, "(")
	}
	var list []string
	for _, t := range append([]string{target}, strings.Split(strings.TrimSuffix(args, ")"), ", ")...) {
		if t != "" {
			list = append(list, wordOf(t))
		}
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, " and ")
}

// nearest returns "; nearest is WORD", "" if no word is near. Of names with the same beginning, what follows is compared.
func (l *language) nearest(name string) string {
	best, distance := "", len(name)
	for _, w := range l.words {
		a, b := name, w
		for _, prefix := range []string{"request.", "response."} {
			if strings.HasPrefix(a, prefix) && strings.HasPrefix(b, prefix) {
				a, b = a[len(prefix):], b[len(prefix):]
			}
		}
		if d := spelling.Distance(a, b); d < distance && d <= max(1, len(a)/3) {
			best, distance = w, d
		}
	}
	if best == "" {
		return ""
	}
	return "; nearest is " + best
}
