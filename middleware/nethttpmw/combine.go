package nethttpmw

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// One type per set of optional interfaces, each a single allocation.
type (
	plain            struct{ recorder }
	flushing         struct{ recorder }
	hijacking        struct{ recorder }
	reading          struct{ recorder }
	flushingReading  struct{ recorder }
	hijackingReading struct{ recorder }
	flushingHijack   struct{ recorder }
	complete         struct{ recorder }
)

func (w *flushing) Flush()                   { _ = w.flush() }
func (w *flushing) FlushError() error        { return w.flush() }
func (w *flushingReading) Flush()            { _ = w.flush() }
func (w *flushingReading) FlushError() error { return w.flush() }
func (w *flushingHijack) Flush()             { _ = w.flush() }
func (w *flushingHijack) FlushError() error  { return w.flush() }
func (w *complete) Flush()                   { _ = w.flush() }
func (w *complete) FlushError() error        { return w.flush() }

func (w *hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error)        { return w.hijack() }
func (w *hijackingReading) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }
func (w *flushingHijack) Hijack() (net.Conn, *bufio.ReadWriter, error)   { return w.hijack() }
func (w *complete) Hijack() (net.Conn, *bufio.ReadWriter, error)         { return w.hijack() }

func (w *reading) ReadFrom(src io.Reader) (int64, error)          { return w.readFrom(src) }
func (w *flushingReading) ReadFrom(src io.Reader) (int64, error)  { return w.readFrom(src) }
func (w *hijackingReading) ReadFrom(src io.Reader) (int64, error) { return w.readFrom(src) }
func (w *complete) ReadFrom(src io.Reader) (int64, error)         { return w.readFrom(src) }

// record wraps a writer and keeps the optional interfaces that it has.
func record(w http.ResponseWriter) (*recorder, http.ResponseWriter) {
	r := recorder{ResponseWriter: w}
	_, flush := w.(http.Flusher)
	_, hijack := w.(http.Hijacker)
	_, read := w.(io.ReaderFrom)
	switch {
	case flush && hijack && read:
		c := &complete{r}
		return &c.recorder, c
	case flush && hijack:
		c := &flushingHijack{r}
		return &c.recorder, c
	case flush && read:
		c := &flushingReading{r}
		return &c.recorder, c
	case hijack && read:
		c := &hijackingReading{r}
		return &c.recorder, c
	case flush:
		c := &flushing{r}
		return &c.recorder, c
	case hijack:
		c := &hijacking{r}
		return &c.recorder, c
	case read:
		c := &reading{r}
		return &c.recorder, c
	}
	c := &plain{r}
	return &c.recorder, c
}
