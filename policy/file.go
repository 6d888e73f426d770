package policy

import (
	"errors"
	"io"
	"io/fs"
	"slices"
)

// openFile opens a file that the policy names below its own folder, and notes its name.
func (s scope) openFile(n *node, field string) (f fs.File, name string, ok bool) {
	if name, ok = s.text(n, field); !ok {
		return nil, "", false
	}
	if s.files == nil {
		s.fail(n.pos, "%s: only a policy that is a file itself may name files", field)
		return nil, "", false
	}
	if !fs.ValidPath(name) || name == "." {
		s.fail(n.pos, "%s %q must be a path below the policy's own folder, without . and ..", field, clip(name, 60))
		return nil, "", false
	}
	if !slices.Contains(s.p.files, name) {
		s.p.files = append(s.p.files, name)
	}
	info, err := fs.Stat(s.files, name) // first, since opening a pipe would wait for somebody to write to it
	if err == nil && !info.Mode().IsRegular() {
		s.fail(n.pos, "%s %q is not a regular file", field, clip(name, 60))
		return nil, "", false
	}
	if f, err = s.files.Open(name); err != nil {
		s.fail(n.pos, "%s %q cannot be opened: %v", field, clip(name, 60), cause(err))
		return nil, "", false
	}
	return f, name, true
}

// maxFile bounds a file that is read whole: keys, pages, ready answers.
const maxFile = 1 << 20

// readFile reads a file of the policy whole.
func (s scope) readFile(n *node, field string) ([]byte, bool) {
	f, name, ok := s.openFile(n, field)
	if !ok {
		return nil, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.TeeReader(io.LimitReader(f, maxFile+1), s.version))
	switch {
	case err != nil:
		s.fail(n.pos, "%s %q cannot be read: %v", field, clip(name, 60), cause(err))
		return nil, false
	case len(data) > maxFile:
		s.fail(n.pos, "%s %q is larger than %d bytes", field, clip(name, 60), maxFile)
		return nil, false
	}
	return data, true
}

// cause drops the operation and the path, which the message names already.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
