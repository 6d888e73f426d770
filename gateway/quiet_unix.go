//go:build unix

package gateway

import "syscall"

// canLook tells whether an idle lane can be looked at.
const canLook = true

// quiet tells whether an idle lane is still open, with nothing on it: a byte that nobody asked for would be taken for the
// next answer.
func (l *lane) quiet() bool {
	if l.raw == nil {
		return false // cannot be looked at
	}
	quiet := false
	err := l.raw.Control(func(fd uintptr) { // Read would mind the deadline of the last answer
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	})
	return err == nil && quiet
}
