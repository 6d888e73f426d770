//go:build !unix

package gateway

// quiet cannot look: a closed connection shows when the request is sent, which is then repeated on a new one if that is
// safe.
func (l *lane) quiet() bool { return true }
