package stale

import (
	"io"
	"sync"
)

// pieces is the size in which a body is read ahead.
const pieces = 32 << 10

// Body returns the body of an answer of which Header has said that it is being taken down: a goroutine reads it ahead as far
// as it is taken down, so that a client that reads slowly does not keep those waiting who wait for the same answer. Closing the
// body below ends the goroutine.
func (k *Keeping) Body(src io.ReadCloser) io.ReadCloser {
	b := &aheadBody{k: k, src: src}
	b.more.L = &b.mu
	go b.readAhead()
	return b
}

type aheadBody struct {
	k    *Keeping
	src  io.ReadCloser
	off  int    // what has been read of what was taken down
	rest []byte // what was read ahead and not taken down

	mu   sync.Mutex
	more sync.Cond
	over bool  // whether the goroutine has left src to the reader
	err  error // what ended src, nil if there may be more
}

func (b *aheadBody) readAhead() {
	buffer := make([]byte, pieces)
	for {
		n, err := b.src.Read(buffer)
		taken := n == 0 || b.k.Write(buffer[:n])
		if err != nil && taken {
			b.k.End(err == io.EOF)
		}
		b.mu.Lock()
		if !taken {
			b.rest = buffer[:n]
		}
		b.over, b.err = err != nil || !taken, err
		over := b.over
		b.more.Broadcast()
		b.mu.Unlock()
		if over {
			return
		}
	}
}

// Read returns what was read ahead, and then the rest.
func (b *aheadBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if taken := b.k.Bytes(); b.off < len(taken) {
			n := copy(p, taken[b.off:])
			b.off += n
			return n, nil
		}
		if b.over {
			b.k.Forget()
		}
		switch {
		case !b.over:
			b.more.Wait()
			continue
		case len(b.rest) > 0:
			n := copy(p, b.rest)
			b.rest = b.rest[n:]
			return n, nil
		case b.err != nil:
			return 0, b.err
		}
		return b.src.Read(p)
	}
}

// Close closes the body below.
func (b *aheadBody) Close() error { return b.src.Close() }
