package redisstore_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/redisstore"
)

// deafServer speaks enough of the protocol for any kind of client, gets every script, and hangs up in place of an answer.
type deafServer struct {
	listener net.Listener
	scripts  atomic.Int64
	wg       sync.WaitGroup
}

func startDeaf(t *testing.T) *deafServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &deafServer{listener: listener}
	d.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.wg.Go(func() {
				defer conn.Close()
				d.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		d.wg.Wait()
	})
	return d
}

func (d *deafServer) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		answer := d.answer(command)
		if answer == "" {
			d.scripts.Add(1)
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func (d *deafServer) answer(command []string) string {
	host, port, _ := net.SplitHostPort(d.listener.Addr().String())
	here := fmt.Sprintf("$%d\r\n%s\r\n", len(host), host)
	switch name := strings.ToUpper(command[0]); name {
	case "EVALSHA", "EVAL":
		return ""
	case "HELLO":
		return "%2\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"
	case "PING":
		return "+PONG\r\n"
	case "ROLE":
		return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
	case "CLUSTER":
		return "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n" + here + ":" + port + "\r\n$1\r\nn\r\n"
	case "SENTINEL":
		if strings.EqualFold(command[1], "SENTINELS") {
			return "*0\r\n"
		}
		return fmt.Sprintf("*2\r\n%s$%d\r\n%s\r\n", here, len(port), port)
	case "SUBSCRIBE":
		var all strings.Builder
		for i, channel := range command[1:] {
			fmt.Fprintf(&all, ">3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(channel), channel, i+1)
		}
		return all.String()
	}
	return "+OK\r\n"
}

// readCommand reads an array of strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r)
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		length, err := readLength(r)
		if err != nil {
			return nil, err
		}
		text := make([]byte, length+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:length])
	}
	return command, nil
}

func readLength(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// TestSentOnce: a take whose answer is lost is sent once, whatever the kind of client, and says that it may have been charged.
func TestSentOnce(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]redisstore.Config{"node": {}, "sentinel": {Master: "m"}, "cluster": {Cluster: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDeaf(t)
			cfg.Timeout = time.Minute // a busy machine is no reason to give up before sending
			cfg.Addrs = []string{d.listener.Addr().String()}
			s := open(t, cfg)
			for i := range int64(5) {
				_, err := headgate.Take(t.Context(), s, headgate.One("s", "k", headgate.MustParseLimit("token_bucket 9/s")))
				if headgate.CodeOf(err) != headgate.CodeIndeterminate {
					t.Errorf("take %d: %v", i, err)
				}
				if n := d.scripts.Load(); n > i+1 {
					t.Fatalf("%d takes were sent %d times", i+1, n)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if n := d.scripts.Load(); n == 0 || n > 5 {
				t.Errorf("5 takes were sent %d times", n)
			}
		})
	}
}
