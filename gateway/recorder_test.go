package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// recorder is a service that keeps every byte it is sent, and answers each request with 200.
type recorder struct {
	url string
	mu  sync.Mutex
	raw []*lockedBuffer // by connection
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{url: "http://" + l.Addr().String()}
	var served sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		served.Wait()
	})
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			seen := new(lockedBuffer)
			r.mu.Lock()
			r.raw = append(r.raw, seen)
			r.mu.Unlock()
			served.Go(func() { answerAll(conn, seen) })
		}
	})
	return r
}

func answerAll(conn net.Conn, seen *lockedBuffer) {
	defer conn.Close()
	in := bufio.NewReader(io.TeeReader(conn, seen))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// errCut says that the connection has ended within a body, which everybody reads as no request.
var errCut = errors.New("the body breaks off")

// requests reads what the service got as strictly as can be: what could be read in two ways is an error.
func (r *recorder) requests() ([]strictRequest, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []strictRequest
	for _, seen := range r.raw {
		for rest := []byte(seen.String()); len(rest) > 0; {
			var req strictRequest
			var err error
			if req, rest, err = readStrict(rest); err == errCut {
				break
			}
			if err != nil {
				return all, fmt.Errorf("%w in %q", err, seen.String())
			}
			all = append(all, req)
		}
	}
	return all, nil
}

type strictRequest struct {
	method, target, host, body string
	header                     map[string][]string // by name in lower case
}

func readStrict(b []byte) (req strictRequest, rest []byte, err error) {
	head, rest, found := bytes.Cut(b, []byte("\r\n\r\n"))
	if !found {
		return req, nil, errors.New("no end of the header")
	}
	lines := strings.Split(string(head), "\r\n")
	line := strings.Split(lines[0], " ")
	if len(line) != 3 || line[2] != "HTTP/1.1" || !isToken(line[0]) || !strings.HasPrefix(line[1], "/") || strings.ContainsAny(lines[0], "\r\n\t\x00#") {
		return req, nil, fmt.Errorf("request line %q", lines[0])
	}
	req = strictRequest{method: line[0], target: line[1], header: map[string][]string{}}
	for _, l := range lines[1:] {
		name, value, ok := strings.Cut(l, ": ")
		if !ok || !isToken(name) || strings.ContainsAny(value, "\r\n\x00") || strings.TrimSpace(value) != value {
			return req, nil, fmt.Errorf("header line %q", l)
		}
		name = strings.ToLower(name)
		req.header[name] = append(req.header[name], value)
	}
	hosts, lengths, codings := req.header["host"], req.header["content-length"], req.header["transfer-encoding"]
	switch {
	case len(hosts) != 1:
		return req, nil, fmt.Errorf("%d hosts", len(hosts))
	case len(lengths)+len(codings) > 1:
		return req, nil, fmt.Errorf("framing by %q and %q", lengths, codings)
	case len(codings) == 1 && codings[0] != "chunked":
		return req, nil, fmt.Errorf("transfer coding %q", codings[0])
	}
	req.host = hosts[0]
	switch {
	case len(codings) == 1:
		req.body, rest, err = readStrictChunks(rest)
	case len(lengths) == 1:
		n, perr := strconv.ParseUint(lengths[0], 10, 32)
		if perr == nil && int(n) > len(rest) {
			return req, nil, errCut
		}
		if perr != nil || strings.Trim(lengths[0], "0123456789") != "" {
			return req, nil, fmt.Errorf("length %q of %d bytes", lengths[0], len(rest))
		}
		req.body, rest = string(rest[:n]), rest[n:]
	}
	return req, rest, err
}

func readStrictChunks(b []byte) (body string, rest []byte, err error) {
	for {
		size, after, found := bytes.Cut(b, []byte("\r\n"))
		if !found && len(size) == 0 {
			return "", nil, errCut
		}
		n, perr := strconv.ParseUint(string(size), 16, 32)
		if !found || perr != nil || len(size) > 8 {
			return "", nil, fmt.Errorf("chunk size %q", size)
		}
		if n == 0 {
			for { // trailers
				line, next, found := bytes.Cut(after, []byte("\r\n"))
				if !found || bytes.ContainsAny(line, "\r\n") {
					return "", nil, errors.New("no end of the chunks")
				}
				if after = next; len(line) == 0 {
					return body, after, nil
				}
			}
		}
		if len(after) < int(n) {
			return "", nil, errCut
		}
		if len(after) < int(n)+2 || string(after[n:n+2]) != "\r\n" {
			return "", nil, errors.New("a chunk without its end")
		}
		body += string(after[:n])
		b = after[n+2:]
	}
}

func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}
