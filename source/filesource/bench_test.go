package filesource

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkLook: what a look at a policy that names nine files costs; there are four in a second.
func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	write := func(name string) {
		if err := os.WriteFile(name, []byte("version: 1\n"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write(file)
	s := New(file)
	d, err := s.Load(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 9 {
		name := fmt.Sprintf("%d.txt", i)
		write(filepath.Join(dir, name))
		if _, err := fs.ReadFile(d.Files(), name); err != nil {
			b.Fatal(err)
		}
	}
	last := s.lastLoad()
	for b.Loop() {
		if !s.look(last).same(last.look()) {
			b.Fatal("it has changed")
		}
	}
}
