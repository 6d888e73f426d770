package expr

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// Compile parses, checks and plans an expression. The error is an [*Error]: the text is longer than [MaxText] bytes, is no
// expression, names what there is not, does not yield the kind, or may cost more than [MaxCost]. It takes about 0.1 ms, and
// is safe for concurrent use.
func Compile(text string, kind Kind) (*Expression, error) {
	l, err := shared()
	if err != nil {
		return nil, errorAt(Place{1, 1}, "the expression language could not be set up: %v", err)
	}
	e, problem := l.compile(text, kind)
	if problem != nil {
		return nil, problem
	}
	return e, nil
}

// Compiler compiles each text only once. Make one for a load of a policy, whose rules often say the same, and drop it
// afterwards: it keeps everything. It is safe for concurrent use; the zero value is ready.
type Compiler struct {
	mu   sync.Mutex
	seen map[source]result
}

type source struct {
	text string
	kind Kind
}

type result struct {
	expression *Expression
	err        error
}

// NewCompiler returns a compiler that has seen nothing.
func NewCompiler() *Compiler { return &Compiler{} }

// Compile is as the function [Compile]; the same text and kind yield the same result.
func (c *Compiler) Compile(text string, kind Kind) (*Expression, error) {
	key := source{text, kind}
	c.mu.Lock()
	r, ok := c.seen[key]
	c.mu.Unlock()
	if ok {
		return r.expression, r.err
	}
	r.expression, r.err = Compile(text, kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier, ok := c.seen[key]; ok {
		return earlier.expression, earlier.err
	}
	if c.seen == nil {
		c.seen = map[source]result{}
	}
	c.seen[key] = r
	return r.expression, r.err
}

func errorAt(at Place, format string, args ...any) *Error {
	return &Error{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)}
}

func (l *language) compile(text string, kind Kind) (*Expression, *Error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	checked, issues := l.env.Compile(text)
	if issues.Err() != nil {
		return nil, l.explain(text, issues.Errors())
	}
	found, err := l.inspect(checked)
	if err != nil {
		return nil, err
	}
	if got := checked.OutputType(); !got.IsExactType(kind.celType()) {
		return nil, errorAt(Place{1, 1}, "this yields %s, and %s is needed here%s", word(got), word(kind.celType()), conversion(kind, got))
	}
	e := &Expression{text: text, language: l, found: found}
	if e.cost, err = l.estimate(checked); err != nil {
		return nil, err
	}
	if e.program, err = l.plan(checked, e.cost >= trackedCost && found.grows); err != nil {
		return nil, err
	}
	return e, nil
}

func checkText(text string) *Error {
	if len(text) > MaxText {
		return errorAt(Place{1, 1}, "the expression has %d bytes; %d are allowed", len(text), MaxText)
	}
	at := Place{1, 1}
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != 0xef:
			return errorAt(at, "the byte %#x is not UTF-8", text[i])
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			return errorAt(at, "the control character %#x does not belong here", r)
		case r == '\n':
			at = Place{at.Line + 1, 1}
		default:
			at.Column++
		}
	}
	return nil
}

// estimate returns the most steps that an expression can take.
func (l *language) estimate(checked *cel.Ast) (uint64, *Error) {
	estimated, err := l.env.EstimateCost(checked, sizes{l.fields})
	switch {
	case err != nil:
		return 0, errorAt(Place{1, 1}, "the cost cannot be estimated: %v", err)
	case estimated.Max > MaxCost:
		return 0, errorAt(Place{1, 1}, "this may take %s steps for one request, and %d are allowed; "+
			"go through fewer parts, such as split(',', 16), or through shorter ones", count(estimated.Max), MaxCost)
	}
	return estimated.Max, nil
}

// count writes a number that has no bound as such.
func count(n uint64) string {
	if n > 1_000_000_000_000 {
		return "more than 10^12"
	}
	return fmt.Sprint(n)
}

// plan makes the program, which counts its steps if it is tracked.
func (l *language) plan(checked *cel.Ast, tracked bool) (cel.Program, *Error) {
	options := []cel.ProgramOption{cel.CustomDecoratorV2(zoned), cel.EvalOptions(cel.OptOptimize)}
	if tracked {
		options = append(options, cel.CostLimit(MaxCost))
	} else {
		options = append(options, cel.CustomDecoratorV2(l.fused))
	}
	program, err := l.env.Program(checked, options...)
	if err == nil {
		return program, nil
	}
	at := Place{1, 1}
	if failed, ok := errors.AsType[*types.Err](err); ok {
		at = placeOf(checked, failed.NodeID())
	}
	return nil, errorAt(at, "a constant is not what it is taken for: %s", clip(err.Error()))
}

// placeOf returns where a node begins.
func placeOf(checked *cel.Ast, id int64) Place {
	at := checked.NativeRep().SourceInfo().GetStartLocation(id)
	s := spot{text: []rune(checked.Source().Content()), at: Place{max(at.Line(), 1), max(at.Column()+1, 1)}}
	s.toStart()
	return s.at
}

// conversion says how to come from one type to a kind.
func conversion(kind Kind, got *cel.Type) string {
	switch {
	case kind == Int && (got.IsExactType(cel.StringType) || got.IsExactType(cel.DoubleType)):
		return "; int(…) makes one of it"
	case kind == Text && (got.IsExactType(cel.IntType) || got.IsExactType(cel.BoolType)):
		return "; string(…) makes one of it"
	}
	return ""
}
