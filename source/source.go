// Package source says what a place is that a policy comes from, such as a file or a key in a store of configuration: an
// interface that yields versions of bytes, whatever they mean. The packages below it implement it, and sourcetest judges
// them.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
)

// MaxDocument is the largest document, in bytes. A source refuses a larger one without having read it whole.
const MaxDocument = 4 << 20

// Source is a place that a document comes from. Its methods are safe for concurrent use; whoever follows a source loads it
// once, and then again whenever Watch says so.
type Source interface {
	// Name says which source it is, and can be shown to anybody: it has no credentials in it.
	Name() string
	// Load returns the document as it is now. The error says what is wrong and where, and can be shown to anybody too. It
	// waits for nothing that may never come, and ends with its context.
	Load(ctx context.Context) (*Document, error)
	// Watch calls changed, from one goroutine, whenever Load may have another answer than it last had: another document, an
	// error in place of a document, or a document in place of an error. A change between that Load and the start of Watch
	// counts. A source that cannot be told of changes asks for them. What comes in one stroke should be told once, when it is
	// complete; that it may not be is for the caller to bear. Watch ends with its context and then returns nil; an error says
	// that nobody watches any more.
	Watch(ctx context.Context, changed func()) error
}

// Document is one version of a document.
type Document struct {
	// Name stands for the document in messages.
	Name string
	// Data has at most MaxDocument bytes.
	Data []byte
	// Folder has the files that the document may name; nil if it may name none, as one from elsewhere.
	Folder *Folder
}

// Files returns the files that the document may name, nil if it may name none.
func (d *Document) Files() fs.FS {
	if d.Folder == nil {
		return nil // and not a nil *Folder in an interface
	}
	return d.Folder
}

// Version names what the document says, the files that have been read for it included: equal versions are equal to the
// byte. It is 64 digits of hex, for a document that names no files those of its SHA-256.
func (d *Document) Version() string {
	sum := sha256.Sum256(d.Data)
	if d.Folder == nil {
		return hex.EncodeToString(sum[:])
	}
	reads := d.Folder.Reads()
	if len(reads) == 0 {
		return hex.EncodeToString(sum[:])
	}
	all := sha256.New()
	all.Write(sum[:])
	for i := range reads {
		_, _ = io.WriteString(all, reads[i].line()) // a hash takes everything
	}
	return hex.EncodeToString(all.Sum(nil))
}
