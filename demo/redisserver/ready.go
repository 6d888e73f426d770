package redisserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// askWithin bounds one question.
const askWithin = time.Second

// ask tells whether it answers to its password, which no other server on the port would.
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
