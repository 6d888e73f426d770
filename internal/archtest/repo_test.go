package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/headgate-io/headgate"

// source is one parsed Go file of the module.
type source struct {
	file string // relative to the root, with slashes
	pkg  string // the folder, root for the root
	test bool
	ast  *ast.File
	fset *token.FileSet
}

func (s *source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return s.file + ":" + strconv.Itoa(p.Line)
}

// imports returns the imported paths; those of this module as folders.
func (s *source) imports() (own, libs []string) {
	for _, spec := range s.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		switch {
		case err != nil || p == "C":
		case p == modulePath:
			own = append(own, root)
		case strings.HasPrefix(p, modulePath+"/"):
			own = append(own, strings.TrimPrefix(p, modulePath+"/"))
		case strings.Contains(strings.Split(p, "/")[0], "."):
			libs = append(libs, p)
		}
	}
	return own, libs
}

// repoRoot is the folder of go.mod.
func repoRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// walk visits every file of the repository, by its path with slashes, relative to the root.
func walk(t *testing.T, visit func(file string) error) {
	t.Helper()
	tree := os.DirFS(repoRoot(t))
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || file == "bin"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return visit(file)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goFiles parses every Go file of the module, whatever its build constraints.
func goFiles(t *testing.T) []*source {
	t.Helper()
	var list []*source
	walk(t, func(file string) error {
		if path.Ext(file) != ".go" || otherModule(file) || strings.Contains(file, "testdata/") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(repoRoot(t), file), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		list = append(list, &source{file: file, pkg: path.Dir(file), test: strings.HasSuffix(file, "_test.go"), ast: f, fset: fset})
		return nil
	})
	if len(list) == 0 {
		t.Fatal("no Go files found")
	}
	return list
}

// otherModule tells whether a file belongs to a module of its own within the repository.
func otherModule(file string) bool {
	return strings.HasPrefix(file, "bench/") || strings.HasPrefix(file, "tools/")
}
