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

// record wraps a writer and keeps the optional interfaces that it has. What http.ResponseController would find below it
// counts as its own: a handler must not get past the wrapper to a connection that is then not accounted for.
func record(w http.ResponseWriter) (*recorder, http.ResponseWriter) {
	r := recorder{ResponseWriter: w}
	flush := reaches(w, func(w http.ResponseWriter) bool {
		if _, ok := w.(interface{ FlushError() error }); ok {
			return true
		}
		_, ok := w.(http.Flusher)
		return ok
	})
	hijack := reaches(w, func(w http.ResponseWriter) bool {
		_, ok := w.(http.Hijacker)
		return ok
	})
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

// reaches tells whether a writer, or one that it wraps, has an ability.
func reaches(w http.ResponseWriter, has func(http.ResponseWriter) bool) bool {
	for {
		if has(w) {
			return true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
}
