//go:build !unix

package gateway

// quiet can only look at what has been read: a closed connection shows when the request is sent, and is then repeated on a
// new one if that is safe.
func (l *lane) quiet() bool { return l.in.Buffered() == 0 }
