package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// allowedState lists the package-level variables that are more than tables, with the reason for each: "FOLDER.NAME".
func allowedState() map[string]string {
	const tables = "a table of fields, read and never written; the functions in it only spell its values"
	return map[string]string{
		"policy.documentMapping":      tables,
		"policy.clientsMapping":       tables,
		"policy.dimensionMapping":     tables,
		"policy.jwtMapping":           tables,
		"policy.listMapping":          tables,
		"policy.ruleMapping":          tables,
		"policy.matchMapping":         tables,
		"policy.overridesMapping":     tables,
		"policy.scheduleMapping":      tables,
		"policy.onDenyMapping":        tables,
		"policy.responseMapping":      tables,
		"policy.degradationMapping":   tables,
		"policy.l3Mapping":            tables,
		"policy.overloadMapping":      tables,
		"policy/internal/expr.shared": "the language of expressions, which nobody changes: made by who needs it first, since that takes a millisecond",
	}
}

// TestNoInit: importing a package of Headgate does nothing.
func TestNoInit(t *testing.T) {
	t.Parallel()
	for _, s := range goFiles(t) {
		if s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: an init function runs behind the back of whoever imports the package; make it a call", s.at(f))
			}
		}
	}
}

// TestNoPackageState: two users of a package in one process never meet in a variable. Tables, errors, embedded files and
// `var _ I = T{}` are fine as long as nothing writes to them.
func TestNoPackageState(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for pkg, files := range productPackages(t) {
		for _, finding := range packageState(files) {
			name := pkg + "." + finding.name
			if _, ok := allowedState()[name]; ok {
				used[name] = true
				continue
			}
			t.Errorf("%s: package-level var %s %s; put it into a struct, or into allowedState with a reason", finding.where, finding.name, finding.why)
		}
	}
	for name := range allowedState() {
		if !used[name] {
			t.Errorf("allowedState has %s, which is not there any more", name)
		}
	}
}

func productPackages(t *testing.T) map[string][]*source {
	t.Helper()
	packages := map[string][]*source{}
	for _, s := range goFiles(t) {
		if !s.test {
			packages[s.pkg] = append(packages[s.pkg], s)
		}
	}
	return packages
}

type finding struct{ name, where, why string }

// packageState finds the variables of one package that are, or may become, state.
func packageState(files []*source) (found []finding) {
	written := map[string]string{}
	for _, s := range files {
		for name, where := range writes(s) {
			written[name] = where
		}
	}
	for _, s := range files {
		for _, d := range s.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v, _ := spec.(*ast.ValueSpec)
				for i, id := range v.Names {
					if why := stateOf(g, v, i, written[id.Name]); why != "" {
						found = append(found, finding{id.Name, s.at(id), why})
					}
				}
			}
		}
	}
	return found
}

// stateOf says why the i-th variable of a declaration is state, "" if it is not.
func stateOf(g *ast.GenDecl, v *ast.ValueSpec, i int, written string) string {
	name := v.Names[i].Name
	switch {
	case name == "_" || isEmbed(g.Doc) || isEmbed(v.Doc):
		return ""
	case written != "":
		return "is written to at " + written
	case i >= len(v.Values):
		return "begins empty, so it is there to be filled"
	case ast.IsExported(name) && !strings.HasPrefix(name, "Err"):
		return "is exported, so anyone can write to it"
	}
	return valueState(v.Values[i])
}

func isEmbed(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// valueState allows literals, and calls that make something which never changes.
func valueState(value ast.Expr) (why string) {
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // code is no state
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				why = "points to something that can change"
			}
		case *ast.CallExpr:
			if f := calleeOf(n.Fun); !makesConstant(f) {
				why = fmt.Sprintf("is made by %s, whose result may change", f)
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && (id.Name == "sync" || id.Name == "atomic") {
				why = "is made for being shared and changed"
			}
		}
		return why == ""
	})
	return why
}

func calleeOf(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return calleeOf(f.X) + "." + f.Sel.Name
	case *ast.ArrayType:
		return "conversion"
	}
	return "a call"
}

func makesConstant(callee string) bool {
	switch callee {
	case "errors.New", "fmt.Errorf", "regexp.MustCompile", "template.Must", "template.New", "strings.NewReplacer", "netip.MustParsePrefix",
		"netip.MustParseAddr", "netip.AddrFrom4", "netip.PrefixFrom", "conversion", "len", "string", "uint64", "int64", "float64", "time.Duration", "lipgloss.Color":
		return true
	}
	return false
}

// writes finds assignments to identifiers, whole or in part, increments and taken addresses, outside declarations. It does
// not look at scopes: a local variable of the same name is taken for the package's, which asks for another name.
func writes(s *source) map[string]string {
	found := map[string]string{}
	note := func(e ast.Expr) {
		if id := baseOf(e); id != nil {
			found[id.Name] = s.at(id)
		}
	}
	locals := localNames(s)
	ranged := map[ast.Expr]bool{} // for range &table only reads
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			ranged[n.X] = true
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					note(e)
				}
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.UnaryExpr:
			if _, literal := n.X.(*ast.CompositeLit); n.Op == token.AND && !literal && !ranged[n] {
				note(n.X)
			}
		}
		return true
	})
	for name := range locals {
		delete(found, name)
	}
	return found
}

// localNames are the names that functions of a file declare for themselves.
func localNames(s *source) map[string]bool {
	names := map[string]bool{}
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			names[id.Name] = true
		}
	}
	for _, d := range s.ast.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok == token.DEFINE {
					for _, e := range n.Lhs {
						add(baseOf(e))
					}
				}
			case *ast.ValueSpec:
				add(n.Names...)
			case *ast.Field:
				add(n.Names...)
			case *ast.RangeStmt:
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if id, ok := e.(*ast.Ident); ok {
						add(id)
					}
				}
			}
			return true
		})
	}
	return names
}

// baseOf returns x of x, x.f, x[i] and *x.
func baseOf(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return baseOf(e.X)
	case *ast.IndexExpr:
		return baseOf(e.X)
	case *ast.StarExpr:
		return baseOf(e.X)
	case *ast.ParenExpr:
		return baseOf(e.X)
	}
	return nil
}

// TestStateIsSeen proves that the check can fail.
func TestStateIsSeen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ code, want string }{
		{`var names = [...]string{"a"}`, ""},
		{`var table = map[string]int{"a": 1}`, ""},
		{`var errBad = errors.New("bad")`, ""},
		{`var ErrBad = errors.New("bad")`, ""},
		{`var _ error = T{}`, ""},
		{"//go:embed x\nvar script string", ""},
		{`var a = [1]int{}; func g() { for range &a {} }`, ""},
		{`var f = func() { counter := 0; counter++ }`, ""},
		{`var names = []string{"a"}; func g() { names := 1; names = 2 }`, ""},
		{`var mu sync.Mutex`, "begins empty"},
		{`var cache map[string]int`, "begins empty"},
		{`var pool = sync.Pool{}`, "shared and changed"},
		{`var cache = make(map[string]int)`, "made by make"},
		{`var def = &T{}`, "points to something"},
		{`var Names = []string{"a"}`, "is exported"},
		{`var n = 1; func g() { n++ }`, "is written to"},
		{`var m = map[string]int{}; func g() { m["a"] = 1 }`, "is written to"},
		{`var a = [1]int{}; func g() *[1]int { return &a }`, "is written to"},
		{`var s = T{}; func g() { s.f = 1 }`, "is written to"},
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x\n"+tc.code, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		got := packageState([]*source{{file: "x.go", pkg: "x", ast: f, fset: fset}})
		switch {
		case tc.want == "" && len(got) > 0:
			t.Errorf("%s: found %v", tc.code, got)
		case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0].why, tc.want)):
			t.Errorf("%s: got %v, want %q", tc.code, got, tc.want)
		}
	}
}
