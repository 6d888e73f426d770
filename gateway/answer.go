package gateway

import (
	"bytes"
	"net/http"
	"strconv"
)

// arrived tells whether the whole answer is in the buffer.
func (t *trip) arrived() bool {
	switch {
	case t.res.StatusCode == http.StatusSwitchingProtocols:
		return false // what follows is a tunnel
	case t.res.ContentLength <= 0 || t.x.r.Method == http.MethodHead:
		return t.res.ContentLength >= 0
	}
	return int64(t.lane.in.Buffered()) >= t.res.ContentLength
}

// soon tells whether a read of the body returns without waiting for the service.
func (t *trip) soon() bool {
	n := t.lane.in.Buffered()
	if n == 0 || t.res.ContentLength >= 0 || !isChunked(t.res) {
		return n > 0
	}
	p, err := t.lane.in.Peek(n)
	if err != nil {
		return false
	}
	digits, rest, found := bytes.Cut(p, []byte("\r\n"))
	size, err := strconv.ParseUint(string(digits[:min(len(digits), 17)]), 16, 32)
	return found && err == nil && uint64(len(rest)) >= size+2 // a reader of chunks waits for the whole chunk
}

// framesNothing tells whether an answer that has no body speaks of one: if it comes after all, it must not become the
// beginning of the next answer.
func framesNothing(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusNoContent:
		length := res.Header.Get("Content-Length")
		return isChunked(res) || length != "" && length != "0"
	case http.StatusNotModified:
		return isChunked(res) // its length is that of an answer to come
	}
	return false
}

func isChunked(res *http.Response) bool { return len(res.TransferEncoding) > 0 }
