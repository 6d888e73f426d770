// Package filesource brings a policy from a file, with the files that it names below its folder.
package filesource

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/headgate-io/headgate/source"
)

// Source is a [source.Source] of one file. However an editor, a tool or a container platform puts a new version there, in
// place, under another name first, by a symlink on the way that turns: it looks at what is there, and not at how it came.
type Source struct {
	file string

	mu   sync.Mutex
	last *loaded // nil before the first Load
}

var _ source.Source = (*Source)(nil)

// loaded is what a Load has found.
type loaded struct {
	at    time.Time
	stamp stamp // of the document
	sum   [sha256.Size]byte
	// folder remembers what else is read; nil if the document could not be.
	folder *source.Folder
}

// New returns the source of a file, which need not be there yet.
func New(file string) *Source { return &Source{file: file} }

// Name returns the file's name.
func (s *Source) Name() string { return s.file }

// Load reads the file. The files in its folder, and below, may be named by it; those outside may not, also by a symlink.
// Nothing but a regular file is read, and so nothing blocks: not a pipe, not a terminal.
func (s *Source) Load(ctx context.Context) (*source.Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s is not read: %w", s.file, err)
	}
	now := &loaded{at: time.Now()}
	data, info, err := readDocument(s.file)
	now.stamp = stampOf(info, err)
	if err == nil {
		now.sum = sha256.Sum256(data)
		now.folder = source.NewFolder(below(filepath.Dir(s.file)))
	}
	s.mu.Lock()
	s.last = now
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s %w", s.file, err)
	}
	return &source.Document{Name: s.file, Data: data, Folder: now.folder}, nil
}

func (s *Source) lastLoad() *loaded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
