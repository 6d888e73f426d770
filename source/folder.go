package source

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"sync"
)

// Folder shows the files below a folder, and remembers what was read of each. So whoever follows a document knows which
// files it names without understanding it, also those that it names in vain. It is safe for concurrent use.
type Folder struct {
	files fs.FS

	mu    sync.Mutex
	reads []*reading
}

// NewFolder returns a folder of these files, of which nothing has been read.
func NewFolder(files fs.FS) *Folder { return &Folder{files: files} }

// Read is what was read of one file.
type Read struct {
	// Name is the path below the folder.
	Name string
	// Failed says why the file could not be opened; "" if it could, or if nobody tried.
	Failed string
	// Info is of the file that was read, from before it was; nil if it failed.
	Info fs.FileInfo
	// Bytes is how much was read from the beginning, End that this was all of it, and Sum its SHA-256.
	Bytes int64
	End   bool
	Sum   [sha256.Size]byte

	opened bool // and not only looked at
}

// line stands for a read in a version.
func (r *Read) line() string {
	if r.Failed != "" {
		return fmt.Sprintf("%q failed\n", r.Name) // the reason may have the words of one system
	}
	return fmt.Sprintf("%q %v %d %v %x\n", r.Name, r.Info.Mode().Type(), r.Bytes, r.End, r.Sum)
}

// again reads as much of the file as was read, and tells whether it is the same.
func (r *Read) again(files fs.FS) bool {
	probe := NewFolder(files)
	if r.opened {
		probe.read(r)
	} else {
		_, _ = probe.Stat(r.Name) // the probe has noted what came of it
	}
	now := probe.Reads()[0]
	return now.line() == r.line() && now.Failed == r.Failed
}

// read reads as much of a file as was read once; whether there is more only if that was found out then.
func (f *Folder) read(as *Read) {
	file, err := f.Open(as.Name)
	if err != nil {
		return
	}
	defer file.Close()
	if _, err = io.CopyN(io.Discard, file, as.Bytes); err == nil && as.End {
		_, _ = file.Read(make([]byte, 1))
	}
}

// reading is a read under way. It belongs to the folder's mutex but for the hash, which its one reader feeds.
type reading struct {
	Read
	hash hash.Hash
}

// Open implements [fs.FS].
func (f *Folder) Open(name string) (fs.File, error) {
	file, err := f.files.Open(name)
	if err != nil {
		f.note(&reading{Read: failed(name, err, true)})
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		f.note(&reading{Read: failed(name, err, true)})
		return nil, errors.Join(err, file.Close())
	}
	r := &reading{Read: Read{Name: name, Info: info, opened: true}, hash: sha256.New()}
	f.note(r)
	return &recordedFile{file: file, folder: f, reading: r}, nil
}

// Stat implements [fs.StatFS].
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(f.files, name)
	if err != nil {
		f.note(&reading{Read: failed(name, err, false)})
		return nil, err
	}
	f.note(&reading{Read: Read{Name: name, Info: info}, hash: sha256.New()})
	return info, nil
}

func failed(name string, err error, opened bool) Read {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return Read{Name: name, Failed: err.Error(), opened: opened}
}

// note keeps a read. A look at a file says less than to open it: the one gives way to the other.
func (f *Folder) note(r *reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	same := func(other *reading) bool { return other.Name == r.Name }
	if !r.opened && slices.ContainsFunc(f.reads, same) {
		return
	}
	f.reads = slices.DeleteFunc(f.reads, func(other *reading) bool { return same(other) && !other.opened })
	f.reads = append(f.reads, r)
}

// Reads returns what has been read so far, in the order of the names. A file that was read twice with the same bytes is
// there once.
func (f *Folder) Reads() []Read {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Read, 0, len(f.reads))
	for _, r := range f.reads {
		if r.hash != nil {
			r.hash.Sum(r.Sum[:0])
		}
		list = append(list, r.Read)
	}
	slices.SortStableFunc(list, func(a, b Read) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b Read) bool { return a.line() == b.line() })
}

// Changed reads everything once more, and tells whether any of it is other than it was.
func (f *Folder) Changed() bool {
	return slices.ContainsFunc(f.Reads(), func(r Read) bool { return !r.again(f.files) })
}

// recordedFile feeds what is read to its reading.
type recordedFile struct {
	file    fs.File
	folder  *Folder
	reading *reading
}

// Stat implements [fs.File].
func (r *recordedFile) Stat() (fs.FileInfo, error) { return r.file.Stat() }

// Close implements [fs.File].
func (r *recordedFile) Close() error { return r.file.Close() }

// Read implements [fs.File].
func (r *recordedFile) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	r.reading.hash.Write(p[:n])
	r.reading.Bytes += int64(n)
	r.reading.End = err == io.EOF
	return n, err
}
