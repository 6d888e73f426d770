package testservers

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below the range that systems give to outgoing connections, so that no client of a test can sit on
// the port of a server that is being restarted.
const (
	firstPort = 10000
	lastPort  = 21999
	// busOffset is where Redis has its cluster bus, relative to the port.
	busOffset = 10000
)

// reservePort returns a TCP port on which nothing listens, nor on its cluster bus port. Until the test ends it is kept from
// other test processes, which look for ports in the same way: by a UDP socket of the same number, which the server does
// not need.
func reservePort(tb TB) int {
	tb.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		lock, err := net.ListenPacket("udp4", loopback(port))
		if err != nil {
			continue
		}
		if !portFree(port) || !portFree(port+busOffset) {
			_ = lock.Close() // nothing was written to it
			continue
		}
		tb.Cleanup(func() { _ = lock.Close() })
		return port
	}
	tb.Fatalf("testservers: no free port from %d to %d", firstPort, lastPort)
	return 0
}

// UnusedAddr returns an address of this machine at which nobody listens until the test ends, but who is given it. A port that the system
// picks, and that is let go of, is soon another listener's.
func UnusedAddr(tb TB) string {
	tb.Helper()
	return loopback(reservePort(tb))
}

func portFree(port int) bool {
	l, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
