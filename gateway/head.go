package gateway

import (
	"bufio"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

var errHeaderValue = errors.New("a header has a line break or a null byte")

// writeHead writes the request line and the header of a request in HTTP/1.1. length is that of the body: -1 for chunks, 0
// for none.
func (x *exchange) writeHead(w *bufio.Writer, h http.Header, length int64) error {
	w.WriteString(x.r.Method)
	w.WriteByte(' ')
	w.WriteString(x.g.up.base)
	w.WriteString(x.judged.Path)
	if x.r.URL.RawQuery != "" || x.r.URL.ForceQuery {
		w.WriteByte('?')
		w.WriteString(x.r.URL.RawQuery)
	}
	w.WriteString(" HTTP/1.1\r\nHost: ")
	w.WriteString(x.r.Host)
	w.WriteString("\r\n")
	for name, values := range h {
		for _, value := range values {
			// net/http has checked what came over the wire; this is for what was added on the way here.
			if !oneLine(name) || !oneLine(value) {
				return errHeaderValue
			}
			writeField(w, name, value)
		}
	}
	switch {
	case length > 0 || length == 0 && methodHasBody(x.r.Method):
		var digits [20]byte
		w.WriteString("Content-Length: ")
		w.Write(strconv.AppendInt(digits[:0], length, 10))
		w.WriteString("\r\n")
	case length < 0:
		w.WriteString("Transfer-Encoding: chunked\r\n")
		for name := range x.body.trailer {
			writeField(w, "Trailer", name)
		}
	}
	_, err := w.WriteString("\r\n")
	return err
}

func writeField(w *bufio.Writer, name, value string) {
	w.WriteString(name)
	w.WriteString(": ")
	w.WriteString(value)
	w.WriteString("\r\n")
}

func oneLine(s string) bool {
	return strings.IndexByte(s, '\n') < 0 && strings.IndexByte(s, '\r') < 0 && strings.IndexByte(s, 0) < 0
}

// methodHasBody names the methods that say so where they have none.
func methodHasBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// writePiece writes a piece of a body, as a chunk where the length is unknown, and sends it off.
func writePiece(w *bufio.Writer, p []byte, chunked bool) error {
	if len(p) == 0 {
		return nil
	}
	if !chunked {
		_, err := w.Write(p)
		return err
	}
	var digits [16]byte
	w.Write(strconv.AppendInt(digits[:0], int64(len(p)), 16))
	w.WriteString("\r\n")
	w.Write(p)
	_, err := w.WriteString("\r\n")
	return err
}

// writeEnd ends a body of chunks with its trailers.
func (b *pacedBody) writeEnd(w *bufio.Writer) error {
	w.WriteString("0\r\n")
	for name, values := range b.trailer {
		for _, value := range values {
			if !oneLine(value) {
				return errHeaderValue
			}
			writeField(w, name, value)
		}
	}
	_, err := w.WriteString("\r\n")
	return err
}
