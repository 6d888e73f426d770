package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxHeldLog bounds what is kept of a log.
const maxHeldLog = 16 << 10

// heldLog keeps the beginning of a log for later. It is safe for concurrent use.
type heldLog struct {
	mu      sync.Mutex
	text    bytes.Buffer
	dropped int
}

// Write keeps one line.
func (h *heldLog) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text.Len()+len(line) > maxHeldLog {
		h.dropped++
		return len(line), nil
	}
	return h.text.Write(line)
}

func (h *heldLog) flush(w io.Writer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dropped > 0 {
		fmt.Fprintf(&h.text, "… and %d more lines\n", h.dropped)
	}
	_, err := h.text.WriteTo(w)
	return err
}
