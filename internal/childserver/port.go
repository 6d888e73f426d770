package childserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// ErrPortTaken is in the chain of an error of [Process.Await] if another listens on the server's port.
var ErrPortTaken = errors.New("its port is taken")

// Ports are from below the range that systems give to outgoing connections: while a server is down, no client can sit on its port, nor
// meet itself there.
const (
	firstPort = 22000
	lastPort  = 29999
	portTries = 20
)

// FreePort returns a port of 127.0.0.1 on which nothing listens. It may be taken before it is used; see [OnFreePort].
func FreePort() int {
	port := firstPort
	for range 1000 {
		port = firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", loopback(port))
		if err == nil && l.Close() == nil {
			return port
		}
	}
	return port
}

// OnFreePort starts a server on the ports that pick gives, nil for [FreePort], until one is not taken: 20 at the most.
func OnFreePort(pick func() int, start func(port int) error) error {
	if pick == nil {
		pick = FreePort
	}
	for try := 1; ; try++ {
		if err := start(pick()); err == nil || try == portTries || !errors.Is(err, ErrPortTaken) {
			return err
		}
	}
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
