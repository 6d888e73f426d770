package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// TestNoSleep: who waits, waits for something. In the virtual time of testing/synctest a sleep is exact and costs nothing.
func TestNoSleep(t *testing.T) {
	t.Parallel()
	for _, s := range goFiles(t) {
		for _, where := range sleeps(s) {
			t.Errorf("%s sleeps: wait for a condition or a timer, or use testing/synctest", where)
		}
	}
}

func sleeps(s *source) (found []string) {
	virtual := slices.ContainsFunc(s.ast.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
	if virtual {
		return nil
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && calleeOf(call.Fun) == "time.Sleep" {
			found = append(found, s.at(call))
		}
		return true
	})
	return found
}

func TestSleepsAreSeen(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		`import "time"; func f() { time.Sleep(1); time.Sleep(2) }`:                       2,
		`import ("testing/synctest"; "time"); func f() { synctest.Wait; time.Sleep(1) }`: 0,
		`import "time"; func f() { time.AfterFunc(1, nil) }`:                             0,
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x\n"+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := sleeps(&source{file: "x.go", ast: f, fset: fset}); len(got) != want {
			t.Errorf("%s: found %v, want %d", code, got, want)
		}
	}
}
