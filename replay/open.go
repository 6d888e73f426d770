package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Stdin is the name that stands for standard input.
const Stdin = "-"

// maxLine is the longest line that is read; what is longer is malformed.
const maxLine = 64 << 10

// Progress tells how far a replay has come. It is safe for concurrent use; the zero value is ready.
type Progress struct {
	// Read and Total are bytes of the files as they lie on the disk; of standard input nothing is known before its end, so it
	// adds nothing to Total.
	Read, Total atomic.Int64
	// Lines have been read, Judged requests have their verdict.
	Lines, Judged atomic.Int64
}

// LogError says what is wrong with a log as a whole.
type LogError struct {
	File string
	Err  error
}

// Error implements error.
func (e *LogError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LogError) Unwrap() error { return e.Err }

// lineReader reads the lines of one log.
type lineReader struct {
	name   string
	in     *bufio.Reader
	closer io.Closer
	line   int64
}

// openLog opens a file, or standard input, and looks through gzip.
func (s *source) openLog(p *Progress) (*lineReader, error) {
	name := s.name
	r := &lineReader{name: name}
	raw := s.stdin
	if name != Stdin {
		f, err := s.openFile(name)
		if err != nil {
			return nil, err
		}
		raw, r.closer = f, f
	}
	counted := bufio.NewReaderSize(&countingReader{raw, &p.Read}, maxLine)
	head, _ := counted.Peek(6) // a short or broken input shows when it is read
	if word := foreignMagic(head); word != "" {
		r.close()
		return nil, &LogError{name, fmt.Errorf("it is compressed with %s, and only gzip is read: %s -dc FILE | headgate replay … --log -", word, word)}
	}
	r.in = counted
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(counted)
		if err != nil {
			r.close()
			return nil, &LogError{name, fmt.Errorf("it begins like gzip and is not: %w", err)}
		}
		r.in = bufio.NewReaderSize(plain, maxLine)
	}
	if mark, _ := r.in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = r.in.Discard(3) // they have just been seen
	}
	return r, nil
}

// openFile returns a function that opens files. When ctx ends, it opens no more, and what waits for a pipe goes on.
func openFile(ctx context.Context) func(name string) (*os.File, error) {
	return func(name string) (*os.File, error) {
		f, err := openUntil(ctx, name)
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		if err != nil {
			return nil, &LogError{name, fmt.Errorf("it cannot be opened: %w", err)}
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			f.Close()
			return nil, &LogError{name, errors.New("it is a folder; name the files in it")}
		}
		if err == nil && !info.Mode().IsRegular() {
			context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Now()) }) // what has no deadlines does not make wait
		}
		return f, nil
	}
}

// openUntil opens a file. A named pipe opens when somebody writes to it, which may be never.
func openUntil(ctx context.Context, name string) (*os.File, error) {
	if _, regular := statLog(name); regular {
		return os.Open(name)
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(name)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.file != nil {
				_ = o.file.Close() // nobody waits for it any more
			}
		}()
		return nil, ctx.Err()
	}
}

// foreignMagic names the program that unpacks what begins like this.
func foreignMagic(head []byte) string {
	for magic, word := range map[string]string{"BZh": "bzip2", "\x28\xb5\x2f\xfd": "zstd", "\xfd7zXZ\x00": "xz"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return word
		}
	}
	return ""
}

// next returns the next line without its end. It is valid until the next call. long tells that the line had more than
// maxLine bytes; then it is its beginning. io.EOF comes alone.
func (r *lineReader) next() (line []byte, long bool, err error) {
	line, err = r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, long = bytes.Clone(line[:1<<10]), true // enough to show; the rest goes by
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.in.ReadSlice('\n')
		}
	}
	if len(line) > 0 {
		r.line++
		return trimLine(line), long, nil // an error that came with it comes again
	}
	return nil, false, err
}

// trimLine takes off the line's end, and the NULs before a line that a rotation by copy and truncate leaves.
func trimLine(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	return bytes.TrimLeft(line, "\x00")
}

func (r *lineReader) close() {
	if r.closer != nil {
		_ = r.closer.Close() // it was only read
	}
}

type countingReader struct {
	from  io.Reader
	bytes *atomic.Int64
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
