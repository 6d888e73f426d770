package filesource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/headgate-io/headgate/source"
)

// unblocked opens a file for reading and never waits for anybody, as opening a pipe would.
const unblocked = os.O_RDONLY | syscall.O_NONBLOCK

var errNotRegular = errors.New("is not a regular file")

// readDocument reads a document, bounded. The file info is from before that. Its errors go on where a file's name ends.
func readDocument(file string) ([]byte, fs.FileInfo, error) {
	f, info, err := openDocument(file)
	if err != nil {
		return nil, info, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, source.MaxDocument+1))
	if err != nil {
		return nil, info, fmt.Errorf("cannot be read: %w", cause(err))
	}
	if len(data) > source.MaxDocument {
		return nil, info, errTooLarge()
	}
	return data, info, nil
}

func errTooLarge() error { return fmt.Errorf("is larger than %d bytes", source.MaxDocument) }

// openDocument opens a document that can be read as far as its looks tell.
func openDocument(file string) (*os.File, fs.FileInfo, error) {
	f, info, err := openRegular(file, os.Stat, os.OpenFile)
	switch {
	case errors.Is(err, errNotRegular):
		return nil, nil, errNotRegular
	case err != nil:
		return nil, nil, fmt.Errorf("cannot be opened: %w", cause(err))
	case info.Size() > source.MaxDocument:
		return nil, info, errors.Join(errTooLarge(), f.Close())
	}
	return f, info, nil
}

// openRegular opens a file if it is a regular one. It looks first, so that nothing else is touched, and looks again at what it
// has opened. That it opens is part of what there is to know: times and sizes that a network file system remembers are made
// new by it, and whether the file may be read is seen.
func openRegular(name string, stat func(string) (fs.FileInfo, error),
	open func(string, int, fs.FileMode) (*os.File, error)) (*os.File, fs.FileInfo, error) {
	info, err := stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	f, err := open(name, unblocked, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// below has the regular files below a folder. The folder is found anew for each: it may be a symlink that turns.
type below string

// Open implements [fs.FS].
func (b below) Open(name string) (fs.File, error) {
	var f *os.File
	err := b.within(name, func(root *os.Root) (err error) {
		f, _, err = openRegular(name, root.Stat, root.OpenFile)
		return err
	})
	if err != nil {
		return nil, err // and not a nil *os.File in an interface
	}
	return f, nil
}

// Stat implements [fs.StatFS].
func (b below) Stat(name string) (info fs.FileInfo, err error) {
	err = b.within(name, func(root *os.Root) (err error) {
		info, err = root.Stat(name)
		return err
	})
	return info, err
}

// within calls f with the folder.
func (b below) within(name string, f func(*os.Root) error) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(b))
	if err != nil {
		return err
	}
	defer root.Close()
	return f(root)
}

// look is what can be seen of a document and of the files that were read for it without reading them.
type look struct {
	document stamp
	files    []stamp
}

func (l look) same(other look) bool {
	return l.document.same(other.document) && slices.EqualFunc(l.files, other.files, stamp.same)
}

// look returns what a Load has seen.
func (l *loaded) look() look {
	seen := look{document: l.stamp}
	for _, r := range l.reads() {
		seen.files = append(seen.files, stamp{failed: r.Failed, info: r.Info})
	}
	return seen
}

// reads returns what was read, and is going to be, for the document of a Load.
func (l *loaded) reads() []source.Read {
	if l.folder == nil {
		return nil
	}
	return l.folder.Reads()
}

// look returns what a Load would see now.
func (s *Source) look(last *loaded) look {
	f, info, err := openDocument(s.file)
	if err == nil {
		f.Close()
	}
	seen := look{document: stampOf(info, err)}
	reads := last.reads()
	if len(reads) == 0 {
		return seen
	}
	root, err := os.OpenRoot(filepath.Dir(s.file))
	if err == nil {
		defer root.Close()
	}
	for _, r := range reads {
		at := stampOf(nil, err)
		if err == nil {
			at = lookAt(root, r.Name)
		}
		seen.files = append(seen.files, at)
	}
	return seen
}

func lookAt(root *os.Root, name string) stamp {
	f, info, err := openRegular(name, root.Stat, root.OpenFile)
	if err != nil {
		return stampOf(nil, err)
	}
	f.Close()
	return stampOf(info, nil)
}

// stamp is what can be seen of a file without reading it.
type stamp struct {
	failed string
	info   fs.FileInfo // nil if it failed
}

func stampOf(info fs.FileInfo, err error) stamp {
	if err != nil {
		return stamp{failed: cause(err).Error()}
	}
	return stamp{info: info}
}

func (s stamp) same(other stamp) bool {
	if s.failed != other.failed || s.info == nil || other.info == nil {
		return s.failed == other.failed && s.info == nil && other.info == nil
	}
	return s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime()) &&
		s.info.Mode() == other.info.Mode() && os.SameFile(s.info, other.info)
}

// cause drops the operation and the path, which the message names already.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
