package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// fullDuplex answers before it reads, and sends back what it reads.
func fullDuplex(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // HTTP/2 needs none
	_ = control.Flush()
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buffer)
		if _, werr := w.Write(buffer[:n]); werr != nil || err != nil {
			return
		}
		_ = control.Flush()
	}
}

func TestClientMayWantTheAnswerBeforeItsBody(t *testing.T) {
	for _, d := range directions {
		t.Run(d.name, func(t *testing.T) {
			addr := served(t, Config{Upstream: d.service + "://" + protocolServer(t, fullDuplex)}, ServerConfig{})
			body, out := io.Pipe()
			defer out.Close()
			res, err := client(t, d.client...).Post("http://"+addr, "text/plain", body)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			in := bufio.NewReader(res.Body)
			for i := range 3 {
				want := fmt.Sprintln("line", i)
				io.WriteString(out, want)
				if line, err := in.ReadString('\n'); err != nil || line != want {
					t.Fatalf("echo %q %v, want %q", line, err, want)
				}
			}
		})
	}
}

// More than all buffers hold goes both ways at a time; neither may wait for the other to end.
func TestBothWaysAtATime(t *testing.T) {
	const size = 32 << 20
	addr := served(t, Config{Upstream: "http://" + protocolServer(t, fullDuplex)}, ServerConfig{})
	conn := dialGateway(t, addr)
	go func() {
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
		io.Copy(conn, &zeros{size})
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
		t.Errorf("%d bytes came back, %v", n, err)
	}
}

// The client is told 100 and the answer, and nothing in between that could get mixed up with them.
func TestContinueWithHints(t *testing.T) {
	service := fakeService(t, func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			io.Copy(io.Discard, req.Body)
			io.WriteString(conn, whole)
		}
	})
	addr := served(t, Config{Upstream: service}, ServerConfig{})
	for range 20 {
		got := see(t, addr, "POST", "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi")
		if got.summary() != "100 200" || got.body != "hello" {
			t.Fatalf("answers %s", got)
		}
	}
}
