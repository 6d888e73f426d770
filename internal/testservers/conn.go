package testservers

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// RedisError is an error that Redis answered.
type RedisError string

// Error returns the text that Redis sent, such as "WRONGTYPE …".
func (e RedisError) Error() string { return string(e) }

// commandTimeout bounds one raw command: a paused server must not hang the test.
const commandTimeout = time.Minute

// conn speaks the Redis protocol (version 2), one command at a time. The servers' clients under test have their own; this
// one shares no code with them.
type conn struct {
	net net.Conn
	r   *bufio.Reader
}

func dial(addr string, tlsConfig *tls.Config) (*conn, error) {
	d := net.Dialer{Timeout: commandTimeout}
	var c net.Conn
	var err error
	if tlsConfig != nil {
		c, err = tls.DialWithDialer(&d, "tcp", addr, tlsConfig)
	} else {
		c, err = d.Dial("tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(commandTimeout)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &conn{net: c, r: bufio.NewReader(c)}, nil
}

func (c *conn) close() error { return c.net.Close() }

// do sends a command and returns its answer: string, int64, nil or []any. An error of Redis is a RedisError.
func (c *conn) do(args ...any) (any, error) {
	if _, err := c.net.Write(encode(args)); err != nil {
		return nil, err
	}
	return c.read()
}

func encode(args []any) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		s := fmt.Sprint(a)
		if raw, ok := a.([]byte); ok {
			s = string(raw)
		}
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(s), s)
	}
	return b
}

func (c *conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("testservers: malformed answer %q", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	if kind == '+' {
		return text, nil
	}
	if kind == '-' {
		return nil, RedisError(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("testservers: malformed answer %q", line)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		return c.readBulk(n)
	case kind == '*':
		return c.readArray(n)
	}
	return nil, fmt.Errorf("testservers: malformed answer %q", line)
}

func (c *conn) readBulk(n int64) (any, error) {
	b := make([]byte, n+2)
	if _, err := io.ReadFull(c.r, b); err != nil {
		return nil, err
	}
	return string(b[:n]), nil
}

// readArray returns an element that is an error as a RedisError value.
func (c *conn) readArray(n int64) (any, error) {
	list := make([]any, n)
	for i := range list {
		v, err := c.read()
		var refused RedisError
		switch {
		case errors.As(err, &refused):
			v = refused
		case err != nil:
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}
