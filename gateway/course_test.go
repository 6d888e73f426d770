package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"testing"
)

func TestCourse(t *testing.T) {
	ours := newGuardedConn(&net.TCPConn{}, 0, 0)
	dial := fmt.Errorf("wrapped: %w", dialError{io.EOF})
	for _, c := range []struct {
		name               string
		conn               net.Conn
		unshaken, written  bool
		err                error
		unsent, unsendable bool
	}{
		{"no connection", nil, false, false, dial, true, false},
		{"none after a kept one", ours, false, true, dial, true, false},
		{"no handshake", nil, true, false, io.EOF, true, false},
		// its own connection was still being made when it got one that another had left
		{"a handshake beside a connection", ours, true, true, io.EOF, false, false},
		{"broken", ours, false, true, io.EOF, false, false},
		{"refused by the transport", ours, false, false, io.EOF, false, true},
		{"refused by the transport, over TLS", tls.Client(ours, &tls.Config{}), false, false, io.EOF, false, true},
		{"refused before it had a connection", nil, false, false, io.EOF, false, false},
	} {
		way := new(course)
		if c.conn != nil {
			way.got(httptrace.GotConnInfo{Conn: c.conn})
		}
		way.shaken(tls.ConnectionState{}, nil)
		if c.unshaken {
			way.shaken(tls.ConnectionState{}, errors.New("bad certificate"))
		}
		if c.written {
			way.wrote()
		}
		if unsent, unsendable := way.unsent(c.err), way.unsendable(); unsent != c.unsent || unsendable != c.unsendable {
			t.Errorf("%s: unsent %t, unsendable %t", c.name, unsent, unsendable)
		}
	}
}

// One of those that a lost connection takes with it is told that it is the first; where the connection lives, each is.
func TestRepeatedFailures(t *testing.T) {
	conn := newGuardedConn(&net.TCPConn{}, 0, 0)
	ways := [3]course{{conn: conn}, {conn: conn}, {}}
	for i := range ways {
		if ways[i].repeats() {
			t.Errorf("%d repeats a failure on a connection that lives", i)
		}
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatal("it can be read from")
	}
	if ways[0].repeats() || !ways[1].repeats() || !ways[0].repeats() || ways[2].repeats() {
		t.Error("not the first alone counts")
	}
	if way := (*course)(nil); way.repeats() {
		t.Error("an attempt that was not sent repeats something")
	}
}
