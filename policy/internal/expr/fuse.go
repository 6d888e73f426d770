package expr

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// fused puts a node of its own in the place of the most common condition, a text or an entry beside a constant text: it
// compares without making a value of the text, which would be an allocation. It counts no steps, so it is for programs that
// are not tracked.
func (l *language) fused(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 || call.Function() != operators.Equals && call.Function() != operators.NotEquals {
		return i, nil
	}
	for left := range 2 {
		constant, ok := call.Args()[1-left].(interpreter.InterpretableConst)
		if !ok {
			continue
		}
		want, ok := constant.Value().(types.String)
		if !ok {
			continue
		}
		if f, entry, ok := l.single(call.Args()[left]); ok {
			return &comparison{call, f, entry, string(want), call.Function() == operators.Equals}, nil
		}
	}
	return i, nil
}

// single returns which text, or which entry, a node reads, if that is all it does.
func (l *language) single(i interpreter.InterpretableV2) (f field, entry string, ok bool) {
	node, ok := i.(interpreter.InterpretableAttribute)
	if !ok {
		return f, "", false
	}
	attribute, ok := node.Attr().(interpreter.NamespacedAttribute)
	if !ok || len(attribute.CandidateVariableNames()) != 1 {
		return f, "", false
	}
	f, ok = l.fields[attribute.CandidateVariableNames()[0]]
	if !ok || f.read == nil {
		return f, "", false
	}
	qualifiers := attribute.Qualifiers()
	if !f.isMap() {
		return f, "", len(qualifiers) == 0
	}
	if len(qualifiers) != 1 {
		return f, "", false
	}
	qualifier, ok := qualifiers[0].(interpreter.ConstantQualifier)
	if !ok {
		return f, "", false
	}
	name, ok := qualifier.Value().(types.String)
	return f, string(name), ok
}

// comparison is a text == or != a constant.
type comparison struct {
	interpreter.InterpretableCall // what it stands for
	field                         field
	entry, want                   string
	equal                         bool
}

// Exec implements interpreter.InterpretableV2.
func (c *comparison) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	self, _ := frame.ResolveName(nameSelf)
	ev, ok := self.(*evaluation)
	if !ok {
		return c.InterpretableCall.Exec(frame)
	}
	value := c.field.read(ev.in, c.entry)
	if len(value) > c.field.longest {
		return types.LabelErrNode(c.ID(), tooLong(c.field.name, value, c.field.longest))
	}
	return types.Bool((value == c.want) == c.equal)
}
