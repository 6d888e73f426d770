package postgresserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
)

// installed is where Debian keeps the programs of each version, the newest first.
func installed() []string {
	paths, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil { // of a pattern that is malformed
		return nil
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	slices.SortFunc(paths, func(a, b string) int { return version(b) - version(a) })
	return paths
}

// Ports are from below the range that systems give to outgoing connections.
const (
	firstPort = 22000
	lastPort  = 29999
)

// freePort returns a port on which nothing listens. It may be taken before it is used.
func freePort() int {
	port := firstPort
	for range 1000 {
		port = firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil && l.Close() == nil {
			return port
		}
	}
	return port
}
