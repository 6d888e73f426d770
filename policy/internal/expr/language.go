package expr

import (
	"errors"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/ext"
)

// MaxText is the longest expression, in bytes.
const MaxText = 2048

// Bounds of the parser. Parentheses, calls and ! nest at most maxDepth deep, and a macro writes out to more nodes than it
// has characters.
const (
	maxDepth = 60
	maxNodes = 4 * MaxText
)

// field is one thing that an expression can read.
type field struct {
	name string
	typ  *cel.Type
	// input is its word in [Expression.Inputs]; "" for what is not of the request.
	input string
	// longest is the most bytes of a text, or of an entry; 0 for what is no text.
	longest int
	// read returns a text, or an entry by its name.
	read func(in Input, entry string) string
}

func (f field) isMap() bool { return f.typ.Kind() == cel.MapKind }

// Names of what can be read.
const (
	nameMethod          = "request.method"
	namePath            = "request.path"
	nameHost            = "request.host"
	nameIP              = "request.ip"
	nameBytes           = "request.bytes"
	nameTime            = "request.time"
	nameHeaders         = "request.headers"
	nameCookies         = "request.cookies"
	nameQuery           = "request.query"
	nameDimensions      = "dim"
	nameStatus          = "response.status"
	nameResponseBytes   = "response.bytes"
	nameResponseHeaders = "response.headers"
)

// fields is everything that an expression can read.
func fields() []field {
	entries := cel.MapType(cel.StringType, cel.StringType)
	return []field{
		{nameMethod, cel.StringType, "method", maxWord, func(in Input, _ string) string { return in.Method() }},
		{namePath, cel.StringType, "path", MaxValue, func(in Input, _ string) string { return in.Path() }},
		{nameHost, cel.StringType, "host", maxWord, func(in Input, _ string) string { return in.Host() }},
		{nameIP, cel.StringType, "ip", maxWord, func(in Input, _ string) string { return in.IP() }},
		{nameBytes, cel.IntType, "bytes", 0, nil},
		{nameTime, cel.TimestampType, "time", 0, nil},
		{nameHeaders, entries, "headers", MaxValue, func(in Input, entry string) string { return in.Header(entry) }},
		{nameCookies, entries, "cookies", MaxValue, func(in Input, entry string) string { return in.Cookie(entry) }},
		{nameQuery, entries, "query", MaxValue, func(in Input, entry string) string { return in.Query(entry) }},
		{nameDimensions, entries, "", MaxValue, func(in Input, entry string) string { return in.Dimension(entry) }},
		{nameStatus, cel.IntType, "", 0, nil},
		{nameResponseBytes, cel.IntType, "", 0, nil},
		{nameResponseHeaders, entries, "", MaxValue, func(in Input, entry string) string { return in.ResponseHeader(entry) }},
	}
}

// usages has the functions of the language and how they are written. What is not here does not compile, whatever the
// library brings along.
func usages() map[string]string {
	return map[string]string{
		"size":         "size(text) or size(list)",
		"startsWith":   "text.startsWith(text)",
		"endsWith":     "text.endsWith(text)",
		"contains":     "text.contains(text)",
		"matches":      "text.matches('pattern')",
		"indexOf":      "text.indexOf(text)",
		"lastIndexOf":  "text.lastIndexOf(text)",
		"charAt":       "text.charAt(int)",
		"substring":    "text.substring(from) or text.substring(from, to)",
		"lowerAscii":   "text.lowerAscii()",
		"upperAscii":   "text.upperAscii()",
		"trim":         "text.trim()",
		"replace":      "text.replace(text, text)",
		"split":        "text.split(text) or text.split(text, most)",
		"int":          "int(text)",
		"double":       "double(text)",
		"string":       "string(value)",
		"bool":         "bool(text)",
		"timestamp":    "timestamp('2026-01-01T00:00:00Z')",
		"duration":     "duration('5m')",
		"getFullYear":  "request.time.getFullYear('Asia/Shanghai')",
		"getMonth":     "request.time.getMonth('Asia/Shanghai')",
		"getDate":      "request.time.getDate('Asia/Shanghai')",
		"getDayOfYear": "request.time.getDayOfYear('Asia/Shanghai')",
		"getDayOfWeek": "request.time.getDayOfWeek('Asia/Shanghai')",
		"getHours":     "request.time.getHours('Asia/Shanghai')",
		"getMinutes":   "request.time.getMinutes('Asia/Shanghai')",
		"getSeconds":   "request.time.getSeconds('Asia/Shanghai')",
	}
}

// symbols has the operators, as the library names them, and how they are written.
func symbols() map[string]string {
	return map[string]string{
		operators.LogicalAnd: "&&", operators.LogicalOr: "||", operators.LogicalNot: "!", operators.Conditional: "?:",
		operators.Equals: "==", operators.NotEquals: "!=", operators.Less: "<", operators.LessEquals: "<=",
		operators.Greater: ">", operators.GreaterEquals: ">=", operators.In: "in", operators.Index: "[]",
		operators.Add: "+", operators.Subtract: "-", operators.Multiply: "*", operators.Divide: "/", operators.Modulo: "%",
		operators.Negate: "-", operators.NotStrictlyFalse: "", // within all and exists
	}
}

// macros are the words that are written out before the expression is checked.
func macros() []string { return []string{"has", "all", "exists", "exists_one", "map", "filter"} }

// language is what all expressions share. It never changes.
type language struct {
	env       *cel.Env
	fields    map[string]field
	usages    map[string]string
	symbols   map[string]string
	words     []string // what a name may have been meant to be
	evaluated sync.Pool
}

func newLanguage() (*language, error) {
	l := &language{fields: map[string]field{}, usages: usages(), symbols: symbols(), words: macros()}
	options := []cel.EnvOption{
		ext.Strings(), cel.CostModel(costModels()...),
		cel.ParserRecursionLimit(maxDepth), cel.ParserExpressionSizeLimit(MaxText), cel.ExpressionNodeLimit(maxNodes), cel.ParserErrorRecoveryLimit(4),
	}
	for _, f := range fields() {
		l.fields[f.name] = f
		l.words = append(l.words, f.name)
		options = append(options, cel.Variable(f.name, f.typ))
	}
	for name := range l.usages {
		l.words = append(l.words, name)
	}
	slices.Sort(l.words)
	l.evaluated.New = func() any { return newEvaluation(l.fields) }
	var err error
	if l.env, err = cel.NewEnv(options...); err != nil {
		return nil, err
	}
	// The checker builds a list of all names at the first unknown one, while others may be reading the place where it keeps
	// it. An unknown name, now, has it built before anyone else comes.
	if _, issues := l.env.Compile("unknown"); issues.Err() == nil {
		return nil, errors.New("the checker takes any name")
	}
	return l, nil
}

// shared makes the language when it is first needed: that takes a few milliseconds, and a policy without expressions has no
// use for it.
var shared = sync.OnceValues(newLanguage)
