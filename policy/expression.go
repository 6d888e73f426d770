package policy

import (
	"errors"

	"github.com/headgate-io/headgate/policy/internal/expr"
)

// expression compiles a text in CEL, once for all that have the same. It returns the dimensions that it names.
func (s scope) expression(n *node, name string, kind expr.Kind) (*expr.Expression, []int) {
	text, ok := s.text(n, name)
	if !ok {
		return nil, nil
	}
	e, err := s.expressions.Compile(text, kind)
	if err != nil {
		s.failExpression(n, name, err)
		return nil, nil
	}
	var needs []int
	for _, dim := range e.Dimensions() {
		i := s.findDimension(s.placeOf(n, e.DimensionAt(dim)), dim)
		if i < 0 {
			return nil, nil
		}
		needs = append(needs, i)
	}
	return e, needs
}

// failExpression reports where in the document an expression is wrong, if it is written in one line; else where in the
// expression.
func (s scope) failExpression(n *node, name string, err error) {
	var e *expr.Error
	switch {
	case !errors.As(err, &e):
		s.fail(n.pos, "%s: %v", name, err)
	case e.Line == 1 && !n.block:
		s.fail(s.placeOf(n, expr.Place{Line: e.Line, Column: e.Column}), "%s: %s", name, e.Message)
	default:
		s.fail(n.pos, "%s: line %d, column %d: %s", name, e.Line, e.Column, e.Message)
	}
}

// placeOf returns where in the document a place in an expression is, or where the expression begins.
func (s scope) placeOf(n *node, p expr.Place) pos {
	if p.Line != 1 || n.block {
		return n.pos
	}
	at := pos{n.pos.line, n.pos.column + max(p.Column, 1) - 1}
	if n.quoted {
		at.column++
	}
	return at
}
