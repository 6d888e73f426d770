package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// keeping serves a long page, and returns the address and what tells of denied requests that are over.
func keeping(t *testing.T, size int, stall time.Duration, minRate int64) (addr string, over <-chan Event) {
	t.Helper()
	page := strings.Repeat("0123456789", size/10)
	service := upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) })
	ended := make(chan Event, 8)
	addr = served(t, Config{
		Upstream: service, Decider: decider(staling), Stale: mustCache(t, stale.Config{MaxBytes: int64(8 * size), MaxAnswer: int64(2 * size)}),
		Stall: stall, MinRate: minRate, Observe: func(e *Event) {
			if e.Verdict.Kind == httpverdict.Limited {
				ended <- *e
			}
		},
	}, ServerConfig{Stall: stall, MinRate: minRate})
	until(t, "it is kept", func() bool { return len(see(t, addr, "GET", plainGet).body) == size })
	return addr, ended
}

// The pace of a client counts for a kept answer as for any: it may be slow, as long as it is not too slow.
func TestKeptAnswerAtAPace(t *testing.T) {
	const size, piece = 25_000_000, 256 << 10
	addr, over := keeping(t, size, time.Second, 1<<20)
	for tries := 10; ; tries-- {
		conn := dialGateway(t, addr)
		io.WriteString(conn, strings.Replace(deniedGet, "X-Deny", "Connection: close\r\nX-Deny", 1))
		read, longest, err := takeSlowly(conn, piece)
		e := <-over
		if e.Bytes == size && read >= size && err == io.EOF {
			return
		}
		if longest < time.Second/2 || tries == 1 { // else this client stood still for too long itself
			t.Fatalf("%d bytes were given, %d have come, want %d; then %v", e.Bytes, read, size, err)
		}
	}
}

// takeSlowly reads 12 MB/s to the end, and returns how long it was about one piece at most.
func takeSlowly(conn net.Conn, piece int64) (read int64, longest time.Duration, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for err == nil {
		begun := time.Now()
		var n int64
		n, err = io.CopyN(io.Discard, conn, piece)
		read += n
		<-tick.C
		longest = max(longest, time.Since(begun))
	}
	return read, longest, err
}

// A client that takes nothing is cut, over HTTP/2 too, where its connection lives on.
func TestKeptAnswerThatIsNotTaken(t *testing.T) {
	for name, protocol := range map[string][]func(*http.Protocols){"HTTP/1.1": nil, "h2c": {h2c}} {
		t.Run(name, func(t *testing.T) {
			const size = 25_000_000
			addr, over := keeping(t, size, time.Second, 1<<20)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/page", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "x"
			req.Header.Set("X-Deny", "1")
			res, err := client(t, protocol...).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			select {
			case e := <-over:
				if e.Bytes >= size {
					t.Errorf("%d bytes were given to a client that reads nothing", e.Bytes)
				}
			case <-time.After(patience):
				t.Fatal("a client that reads nothing holds a request for ever")
			}
		})
	}
}

// Anybody may claim to come from elsewhere; what the service has said to somebody who is not believed is not for those who are.
func TestClaimsDoNotPoison(t *testing.T) {
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s://%s/", r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"))
	})
	addr := served(t, Config{Upstream: service, Decider: decider(func(r *httpverdict.Request) *httpverdict.Verdict {
		v := staling(r)
		v.ClientIP = r.Peer
		if r.Header.Get("X-Trusted") != "" { // as a policy would find out by the peer
			v.ClientIP = v.ClientIP.Next()
		}
		return v
	})}, ServerConfig{})
	const claim = "GET /page HTTP/1.1\r\nHost: x\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n"
	if got := see(t, addr, "GET", claim+"\r\n"); got.body != "http://x/" {
		t.Fatalf("%s %q", got.summary(), got.body)
	}
	if got := see(t, addr, "GET", claim+"X-Trusted: 1\r\nX-Deny: 1\r\n\r\n"); got.summary() != "429" {
		t.Errorf("the answer to anybody is given to one who is believed: %q", got.body)
	}
	if got := see(t, addr, "GET", claim+"X-Trusted: 1\r\n\r\n"); got.body != "https://shop.example/" {
		t.Errorf("%s %q", got.summary(), got.body)
	}
	if got := see(t, addr, "GET", claim+"X-Trusted: 1\r\nX-Deny: 1\r\n\r\n"); got.body != "https://shop.example/" {
		t.Errorf("%s %q", got.summary(), got.body)
	}
}
