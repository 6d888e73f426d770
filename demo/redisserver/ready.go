package redisserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"
)

// Ports are from below the range that systems give to outgoing connections: while it is down, no client can sit on its port,
// nor meet itself there.
const (
	firstPort = 10000
	lastPort  = 21999
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

var errPortTaken = errors.New("its port is taken")

const (
	readyEvery = 10 * time.Millisecond
	askWithin  = time.Second
)

// await waits until it answers to its password, which no other server on the port would.
func (s *Server) await(ctx context.Context, r *run) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	alive, dies := context.WithCancel(ctx) // whoever else listens on its port may never answer
	defer dies()
	go func() {
		select {
		case <-r.done:
			dies()
		case <-alive.Done():
		}
	}()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	err := errors.New("it was not asked")
	for {
		select {
		case <-r.done:
			return s.failed(r.how)
		case <-ctx.Done():
			return fmt.Errorf("the Redis at %s does not answer: %w: %w", s.Addr(), ctx.Err(), err)
		case <-tick.C:
		}
		if err = s.ask(alive); err == nil {
			return nil
		}
	}
}

// failed says why the process has ended, in the words of its log.
func (s *Server) failed(how error) error {
	text, err := os.ReadFile(s.file("log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := lines[max(0, len(lines)-3):]
	err = errors.Join(how, err)
	if err == nil {
		err = errors.New("exit status 0")
	}
	if strings.Contains(string(text), "already in use") {
		return fmt.Errorf("%s cannot listen on %s: %w", s.program, s.Addr(), errPortTaken)
	}
	return fmt.Errorf("%s ended when it was started: %w; its log ends with %q", s.program, err, strings.Join(last, "; "))
}

// ask tells whether it does its work.
func (s *Server) ask(ctx context.Context) error {
	dial := net.Dialer{Timeout: askWithin}
	conn, err := dial.DialContext(ctx, "tcp4", s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(askWithin)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\nPING\r\n", s.password); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	for _, want := range []string{"+OK", "+PONG"} {
		got, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if got = strings.TrimSpace(got); got != want {
			return fmt.Errorf("it says %q", got)
		}
	}
	return nil
}
