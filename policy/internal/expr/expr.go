package expr

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Kind is what an expression yields.
type Kind uint8

const (
	// Bool is true or false.
	Bool Kind = iota
	// Int is a whole number.
	Int
	// Text is a text of at most [MaxValue] bytes.
	Text
)

func (k Kind) celType() *cel.Type {
	switch k {
	case Int:
		return cel.IntType
	case Text:
		return cel.StringType
	default:
		return cel.BoolType
	}
}

// Error says what is wrong with an expression, and where.
type Error struct {
	// Line and Column count from 1 within the text; a column is a character.
	Line, Column int
	// Message says what is wrong and what to write instead.
	Message string
}

// Error returns LINE:COLUMN: MESSAGE.
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// Place is a place in the text of an expression, counted as in [Error].
type Place struct{ Line, Column int }

// Expression is a compiled expression. It never changes, and is safe for concurrent use.
type Expression struct {
	text     string
	language *language
	program  cel.Program
	cost     uint64
	found    findings
}

// Text returns the expression as it was written.
func (e *Expression) Text() string { return e.text }

// MaxSteps returns the estimate of the most steps that a run can take, at most [MaxCost].
func (e *Expression) MaxSteps() uint64 { return e.cost }

// UsesResponse tells whether the expression names anything of the response.
func (e *Expression) UsesResponse() bool { return e.found.response }

// UsesBody tells whether the expression needs the request's body for more than the dimensions it names. Nothing in the
// language does so far.
func (e *Expression) UsesBody() bool { return false }

// Dimensions returns the names of the dimensions in the expression, sorted, each once.
func (e *Expression) Dimensions() []string {
	names := make([]string, 0, len(e.found.dimensions))
	for name := range e.found.dimensions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// DimensionAt returns where a dimension is first named; the zero Place if it is not.
func (e *Expression) DimensionAt(name string) Place { return e.found.dimensions[name] }

// Inputs returns what else of the request is read, sorted: bytes, cookies, headers, host, ip, method, path, query, time.
func (e *Expression) Inputs() []string { return slices.Clone(e.found.inputs) }

// Bool runs an expression of kind [Bool]. The error says what could not be computed, such as the number in a text that has
// none.
func (e *Expression) Bool(in Input) (bool, error) {
	value, err := e.run(in)
	if err != nil {
		return false, err
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, e.mismatch(value)
	}
	return bool(b), nil
}

// Int is as Bool for the kind [Int].
func (e *Expression) Int(in Input) (int64, error) {
	value, err := e.run(in)
	if err != nil {
		return 0, err
	}
	n, ok := value.(types.Int)
	if !ok {
		return 0, e.mismatch(value)
	}
	return int64(n), nil
}

// Str is as Bool for the kind [Text]. A text of more than [MaxValue] bytes is an error.
func (e *Expression) Str(in Input) (string, error) {
	value, err := e.run(in)
	if err != nil {
		return "", err
	}
	s, ok := value.(types.String)
	switch {
	case !ok:
		return "", e.mismatch(value)
	case len(s) > MaxValue:
		return "", fmt.Errorf("%s: the result has %d bytes; %d are allowed", clip(e.text), len(s), MaxValue)
	}
	return string(s), nil
}

// run never panics: the library turns what a method of the input panics with into an error.
func (e *Expression) run(in Input) (ref.Val, error) {
	ev := e.language.evaluated.Get().(*evaluation)
	ev.in = in
	value, _, err := e.program.Eval(ev)
	ev.in = nil
	e.language.evaluated.Put(ev)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", clip(e.text), clip(err.Error()))
	}
	return value, nil
}

func (e *Expression) mismatch(value ref.Val) error {
	return fmt.Errorf("%s: the result is of type %s", clip(e.text), value.Type().TypeName())
}

// maxClip is the most characters of a text that an error quotes. What a client sends can be in there.
const maxClip = 80

// clip returns the beginning of a text, in one line of printable characters.
func clip(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxClip {
			b.WriteString("…")
			break
		}
		if r < ' ' || r == 0x7f || r == 0xfffd {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}
