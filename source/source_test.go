package source_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/headgate-io/headgate/source"
)

func TestVersionOfADocumentAlone(t *testing.T) {
	t.Parallel()
	data := []byte("version: 1\n")
	want := fmt.Sprintf("%x", sha256.Sum256(data))
	d := source.Document{Name: "p", Data: data}
	if d.Files() != nil || d.Version() != want {
		t.Errorf("files %v, version %s; want none, and the SHA-256 %s", d.Files(), d.Version(), want)
	}
	d.Folder = source.NewFolder(fstest.MapFS{"a.txt": {Data: []byte("a")}})
	if d.Files() == nil || d.Version() != want {
		t.Errorf("with files that nobody reads: %v, %s", d.Files(), d.Version())
	}
}

// TestFolderRemembers: every way of looking at a file is remembered, and what it was that was read is compared.
func TestFolderRemembers(t *testing.T) {
	t.Parallel()
	readAll := func(f fs.FS) { _, _ = fs.ReadFile(f, "a.txt") }
	readTwo := func(f fs.FS) {
		file, err := f.Open("a.txt")
		if err != nil {
			return
		}
		defer file.Close()
		_, _ = io.ReadFull(file, make([]byte, 2))
	}
	stat := func(f fs.FS) { _, _ = fs.Stat(f, "a.txt") }
	nothing := func(fs.FS) {}
	for name, c := range map[string]struct {
		before, after string // "" is no file
		read          func(fs.FS)
		changed       bool
		reads         int
	}{
		"same":                         {"abc", "abc", readAll, false, 1},
		"other":                        {"abc", "abd", readAll, true, 1},
		"longer":                       {"abc", "abcd", readAll, true, 1},
		"shorter":                      {"abc", "ab", readAll, true, 1},
		"gone":                         {"abc", "", readAll, true, 1},
		"came":                         {"", "abc", readAll, true, 1},
		"still missing":                {"", "", readAll, false, 1},
		"beginning same":               {"abc", "abd", readTwo, false, 1},
		"beginning other":              {"abc", "xbc", readTwo, true, 1},
		"shorter than the beginning":   {"abc", "a", readTwo, true, 1},
		"looked at, gone":              {"abc", "", stat, true, 1},
		"looked at, missing":           {"", "", stat, false, 1},
		"looked at, came":              {"", "abc", stat, true, 1},
		"looked at, other":             {"abc", "abd", stat, false, 1},
		"looked at and read":           {"abc", "abd", func(f fs.FS) { stat(f); readAll(f); stat(f) }, true, 1},
		"read twice":                   {"abc", "abd", func(f fs.FS) { readAll(f); readAll(f) }, true, 1},
		"read once whole and once not": {"abc", "abd", func(f fs.FS) { readAll(f); readTwo(f) }, true, 2},
		"not looked at":                {"abc", "abd", nothing, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			set := func(text string) {
				delete(files, "a.txt")
				if text != "" {
					files["a.txt"] = &fstest.MapFile{Data: []byte(text)}
				}
			}
			set(c.before)
			d := source.Document{Folder: source.NewFolder(files)}
			c.read(d.Files())
			if n := len(d.Folder.Reads()); n != c.reads {
				t.Errorf("%d reads are remembered, want %d", n, c.reads)
			}
			if d.Folder.Changed() {
				t.Error("it has changed before anything has")
			}
			set(c.after)
			if got := d.Folder.Changed(); got != c.changed {
				t.Errorf("changed: %v, want %v", got, c.changed)
			}
			next := source.Document{Folder: source.NewFolder(files)}
			c.read(next.Files())
			if same := next.Version() == d.Version(); same == c.changed {
				t.Errorf("the versions are the same: %v, want %v", same, !c.changed)
			}
		})
	}
}

func TestFolderReads(t *testing.T) {
	t.Parallel()
	folder := source.NewFolder(fstest.MapFS{"b.txt": {Data: []byte("b")}, "a.txt": {Data: []byte("a")}})
	for _, name := range []string{"b.txt", "missing", "a.txt"} {
		_, _ = fs.ReadFile(folder, name)
	}
	var names []string
	for _, r := range folder.Reads() {
		names = append(names, r.Name)
		if r.Name == "missing" {
			if r.Failed != fs.ErrNotExist.Error() || r.Info != nil {
				t.Errorf("of what is missing: %+v", r)
			}
			continue
		}
		if r.Sum != sha256.Sum256([]byte(r.Name[:1])) || r.Bytes != 1 || !r.End || r.Info.Size() != 1 {
			t.Errorf("of %s: %+v", r.Name, r)
		}
	}
	if want := []string{"a.txt", "b.txt", "missing"}; !slices.Equal(names, want) {
		t.Errorf("the names are %v, want %v", names, want)
	}
	if _, err := folder.Open("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error of a folder is its files': %v", err)
	}
}
