package expr

import (
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// findings is what an expression reads.
type findings struct {
	dimensions map[string]Place
	inputs     []string
	response   bool
	// grows tells that a value can become longer than what it is made of, or that there is a loop.
	grows bool
}

// inspector walks over a checked expression. It finds what is read, refuses what the library would take and this language
// does not, and writes names of headers the way http.Header has them.
type inspector struct {
	*language
	checked *cel.Ast
	factory ast.ExprFactory
	locals  []string // variables of the macros around
	found   findings
	err     *Error // the first
}

func (l *language) inspect(checked *cel.Ast) (findings, *Error) {
	in := &inspector{language: l, checked: checked, factory: ast.NewExprFactory(), found: findings{dimensions: map[string]Place{}}}
	in.visit(checked.NativeRep().Expr())
	slices.Sort(in.found.inputs)
	in.found.inputs = slices.Compact(in.found.inputs)
	return in.found, in.err
}

func (in *inspector) fail(e ast.Expr, format string, args ...any) {
	if in.err == nil {
		in.err = errorAt(placeOf(in.checked, e.ID()), format, args...)
	}
}

func (in *inspector) visit(e ast.Expr) {
	if in.err != nil {
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		in.ident(e)
	case ast.SelectKind:
		in.selection(e)
	case ast.CallKind:
		in.call(e)
	case ast.ListKind:
		in.visitAll(e.AsList().Elements())
		in.uniform(e)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			in.visit(entry.AsMapEntry().Key())
			in.visit(entry.AsMapEntry().Value())
		}
		in.uniform(e)
	case ast.ComprehensionKind:
		in.comprehension(e)
	case ast.LiteralKind:
	default:
		in.fail(e, "messages have no use here; an expression yields a text, a number or true or false")
	}
}

func (in *inspector) visitAll(list []ast.Expr) {
	for _, e := range list {
		in.visit(e)
	}
}

// fieldOf returns the field that an expression names, if it does.
func (in *inspector) fieldOf(e ast.Expr) (field, bool) {
	if e.Kind() != ast.IdentKind || slices.Contains(in.locals, e.AsIdent()) {
		return field{}, false
	}
	f, ok := in.fields[strings.TrimPrefix(e.AsIdent(), ".")]
	return f, ok
}

func (in *inspector) read(f field) {
	switch {
	case f.input != "":
		in.found.inputs = append(in.found.inputs, f.input)
	case f.name != nameDimensions:
		in.found.response = true
	}
}

// ident is a name that stands alone, not before [] or a dot.
func (in *inspector) ident(e ast.Expr) {
	f, ok := in.fieldOf(e)
	switch {
	case ok && f.name == nameDimensions:
		in.fail(e, `name the dimension: dim.tier or dim["user-id"]`)
	case ok && f.isMap():
		in.fail(e, `%s is read by name: %s["%s"]`, f.name, f.name, exampleEntry(f.name))
	case ok:
		in.read(f)
	case !slices.Contains(in.locals, e.AsIdent()):
		in.fail(e, "%s is a type, and types are no values here", e.AsIdent())
	}
}

func exampleEntry(name string) string {
	switch name {
	case nameCookies:
		return "sid"
	case nameQuery:
		return "q"
	}
	return "x-app"
}

// selection is a dot, also within has().
func (in *inspector) selection(e ast.Expr) {
	s := e.AsSelect()
	f, ok := in.fieldOf(s.Operand())
	if !ok {
		in.visit(s.Operand())
		return
	}
	name := in.entry(f, s.FieldName(), e)
	if name == s.FieldName() {
		return
	}
	if s.IsTestOnly() {
		e.SetKindCase(in.factory.NewPresenceTest(e.ID(), s.Operand(), name))
	} else {
		e.SetKindCase(in.factory.NewSelect(e.ID(), s.Operand(), name))
	}
}

// key is what stands in the brackets after a field, or before "in".
func (in *inspector) key(f field, e ast.Expr) {
	literal, ok := types.String(""), false
	if e.Kind() == ast.LiteralKind {
		literal, ok = e.AsLiteral().(types.String)
	}
	switch {
	case ok:
		if name := in.entry(f, string(literal), e); name != string(literal) {
			e.SetKindCase(in.factory.NewLiteral(e.ID(), types.String(name)))
		}
	case f.name == nameDimensions:
		in.fail(e, `name the dimension: dim.tier or dim["user-id"]; a computed name is not known at load`)
	default:
		in.read(f)
		in.visit(e)
	}
}

// entry notes that an entry of a field is read, and returns the name to read it by.
func (in *inspector) entry(f field, name string, at ast.Expr) string {
	in.read(f)
	switch f.name {
	case nameDimensions:
		if _, ok := in.found.dimensions[name]; !ok {
			in.found.dimensions[name] = placeOf(in.checked, at.ID())
		}
	case nameHeaders, nameResponseHeaders:
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !isToken(name):
			in.fail(at, "no header can have the name %q", clip(name))
		case f.name == nameHeaders && canonical == "Host":
			in.fail(at, "the header Host is %s", nameHost) // net/http takes it out of the headers
		}
		return canonical
	}
	if name == "" {
		in.fail(at, "the name of the entry is empty")
	}
	return name
}

// isToken tells whether a text can be the name of a header (RFC 9110, section 5.6.2).
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return name != ""
}

func (in *inspector) call(e ast.Expr) {
	c := e.AsCall()
	name, args := c.FunctionName(), c.Args()
	_, symbol := in.symbols[name]
	if _, ok := in.usages[name]; !ok && !symbol {
		in.fail(e, "%s is not part of this language%s", name, in.nearest(name))
		return
	}
	if c.IsMemberFunction() {
		in.visit(c.Target())
	}
	switch {
	case name == operators.Index || name == operators.In:
		in.lookup(e)
		return
	case name == operators.Add || name == "replace":
		in.found.grows = true
	case name == operators.Equals || name == operators.NotEquals:
		in.comparison(e)
	case name == "matches":
		in.pattern(e)
	case name == "split" && len(args) == 2:
		in.parts(args[1])
	case strings.HasPrefix(name, "get") && len(args) == 1:
		in.zone(args[0])
	}
	in.visitAll(args)
}

// lookup is m[k] or k in m.
func (in *inspector) lookup(e ast.Expr) {
	c := e.AsCall()
	whole, key := c.Args()[0], c.Args()[1]
	if c.FunctionName() == operators.In {
		whole, key = key, whole
	}
	if f, ok := in.fieldOf(whole); ok && f.isMap() {
		in.key(f, key)
		return
	}
	in.visitAll(c.Args())
}

// comparison keeps to values of a known size: a list compares all that is in it.
func (in *inspector) comparison(e ast.Expr) {
	for _, arg := range e.AsCall().Args() {
		if f, ok := in.fieldOf(arg); ok && f.isMap() {
			in.ident(arg)
		}
		if t := in.checked.NativeRep().GetType(arg.ID()); t.Kind() == types.ListKind || t.Kind() == types.MapKind {
			in.fail(e, "lists are not compared as a whole; use in, all or exists")
		}
	}
}

func (in *inspector) pattern(e ast.Expr) {
	c := e.AsCall()
	if !c.IsMemberFunction() {
		in.fail(e, "write %s", in.usages["matches"])
		return
	}
	literal, ok := constant(c.Args()[0])
	if !ok {
		in.fail(c.Args()[0], "the pattern of matches is a constant; startsWith, endsWith and contains take any text")
		return
	}
	if _, err := regexp.Compile(literal); err != nil {
		in.fail(c.Args()[0], "the pattern of matches is none: %s", clip(strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
	}
}

// parts checks the limit of split: without one of its own, the estimate would not know it.
func (in *inspector) parts(limit ast.Expr) {
	if limit.Kind() == ast.LiteralKind {
		if n, ok := limit.AsLiteral().(types.Int); ok && 1 <= n && n <= maxParts {
			return
		}
	}
	in.fail(limit, "the limit of split is a constant from 1 to %d", maxParts)
}

func (in *inspector) zone(e ast.Expr) {
	name, ok := constant(e)
	if !ok {
		in.fail(e, "a zone is a constant, such as 'Asia/Shanghai' or '+08:00'")
		return
	}
	if _, err := location(name); err != nil {
		in.fail(e, "the zone %q is unknown; it is such as 'Asia/Shanghai' or '+08:00'", clip(name))
	}
}

func constant(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// uniform refuses lists and maps of mixed types, whose errors would show only at run time.
func (in *inspector) uniform(e ast.Expr) {
	for _, t := range in.checked.NativeRep().GetType(e.ID()).Parameters() {
		if t.Kind() == types.DynKind && !isEmpty(e) {
			in.fail(e, "what is in a list or a map is all of one type")
		}
	}
}

func isEmpty(e ast.Expr) bool {
	return e.Kind() == ast.ListKind && e.AsList().Size() == 0 || e.Kind() == ast.MapKind && e.AsMap().Size() == 0
}

// comprehension is a macro such as exists, written out.
func (in *inspector) comprehension(e ast.Expr) {
	c := e.AsComprehension()
	switch c.IterVar() {
	case "dim", "request", "response":
		in.fail(e, "%s has a meaning already; choose another name", c.IterVar())
	}
	in.found.grows = true
	in.visit(c.IterRange())
	in.visit(c.AccuInit())
	before := len(in.locals)
	in.locals = append(in.locals, c.IterVar(), c.AccuVar())
	in.visit(c.LoopCondition())
	in.visit(c.LoopStep())
	in.visit(c.Result())
	in.locals = in.locals[:before]
}
