package expr

import (
	"errors"
	"reflect"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Input is what an expression sees of one request. Its methods are called only for what the expression names, and only on
// the goroutine of the caller.
//
//nolint:interfacebloat // one method for each thing that an expression can name
type Input interface {
	Method() string
	Path() string
	Host() string
	IP() string
	// Header returns a header of the request, "" if it is missing or there twice. A name that stands in the expression comes
	// in the form that http.Header has as its key; one that is computed comes as it is, in any case.
	Header(name string) string
	// Cookie and Query return "" for what is missing.
	Cookie(name string) string
	Query(name string) string
	// Bytes is the length of the request's body, as far as it is known.
	Bytes() int64
	// Dimension returns the value of a dimension of the policy, "" if it is missing.
	Dimension(name string) string
	Now() time.Time
	// Status is the status of the response, 0 before there is one.
	Status() int
	// ResponseBytes is the length of the response's body, 0 before there is one.
	ResponseBytes() int64
	// ResponseHeader is as Header, of the response.
	ResponseHeader(name string) string
}

// evaluation is one run of an expression. It resolves names when they are read.
type evaluation struct {
	in                                       Input
	headers, cookies, query, dims, responses entries
}

func newEvaluation(fields map[string]field) *evaluation {
	ev := &evaluation{}
	ev.headers = entries{ev, fields[nameHeaders]}
	ev.cookies = entries{ev, fields[nameCookies]}
	ev.query = entries{ev, fields[nameQuery]}
	ev.dims = entries{ev, fields[nameDimensions]}
	ev.responses = entries{ev, fields[nameResponseHeaders]}
	return ev
}

var _ cel.Activation = (*evaluation)(nil)

// Parent implements cel.Activation.
func (ev *evaluation) Parent() cel.Activation { return nil }

// nameSelf resolves to the evaluation itself. No name in an expression can have an @.
const nameSelf = "@evaluation"

// ResolveName implements cel.Activation.
func (ev *evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case nameSelf:
		return ev, true
	case nameHeaders:
		return &ev.headers, true
	case nameDimensions:
		return &ev.dims, true
	case nameCookies:
		return &ev.cookies, true
	case nameQuery:
		return &ev.query, true
	case nameResponseHeaders:
		return &ev.responses, true
	}
	return ev.resolveValue(name)
}

func (ev *evaluation) resolveValue(name string) (any, bool) {
	switch name {
	case nameMethod:
		return bounded(name, ev.in.Method(), maxWord), true
	case namePath:
		return bounded(name, ev.in.Path(), MaxValue), true
	case nameHost:
		return bounded(name, ev.in.Host(), maxWord), true
	case nameIP:
		return bounded(name, ev.in.IP(), maxWord), true
	case nameBytes:
		return types.Int(ev.in.Bytes()), true
	case nameTime:
		return types.Timestamp{Time: ev.in.Now()}, true
	case nameStatus:
		return types.Int(ev.in.Status()), true
	case nameResponseBytes:
		return types.Int(ev.in.ResponseBytes()), true
	}
	return nil, false
}

// bounded is a text of the request, or the error that it is too long to look at.
func bounded(name, value string, longest int) ref.Val {
	if len(value) > longest {
		return tooLong(name, value, longest)
	}
	return types.String(value)
}

func tooLong(name, value string, longest int) ref.Val {
	return types.NewErr("%s has %d bytes; %d are looked at", name, len(value), longest)
}

// entries is a map from text to text that is read one by one. For the library it is something that can be indexed, not a
// whole map: a missing entry reads as "", which a map's would not.
type entries struct {
	ev    *evaluation
	field field
}

var (
	_ traits.Indexer     = (*entries)(nil)
	_ traits.FieldTester = (*entries)(nil)
	_ traits.Container   = (*entries)(nil)
	_ ref.Val            = (*entries)(nil)
)

// Get implements traits.Indexer.
func (e *entries) Get(index ref.Val) ref.Val {
	name, ok := index.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(index)
	}
	return bounded(e.field.name, e.field.read(e.ev.in, string(name)), e.field.longest)
}

// IsSet implements traits.FieldTester, for has().
func (e *entries) IsSet(field ref.Val) ref.Val { return e.Contains(field) }

// Contains implements traits.Container, for the operator in.
func (e *entries) Contains(value ref.Val) ref.Val {
	name, ok := value.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(value)
	}
	return types.Bool(e.field.read(e.ev.in, string(name)) != "")
}

// errWhole is what remains of the rest of ref.Val: the walk over the expression lets none of it come about.
var errWhole = errors.New("entries are read by name")

// ConvertToNative implements ref.Val.
func (e *entries) ConvertToNative(reflect.Type) (any, error) { return nil, errWhole }

// ConvertToType implements ref.Val.
func (e *entries) ConvertToType(ref.Type) ref.Val { return types.WrapErr(errWhole) }

// Equal implements ref.Val.
func (e *entries) Equal(ref.Val) ref.Val { return types.WrapErr(errWhole) }

// Type implements ref.Val.
func (e *entries) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (e *entries) Value() any { return e }
