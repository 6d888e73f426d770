package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestDeniedBodiesKeepTheConnection: requests whose bodies nobody reads are denied one after the other on one connection.
func TestDeniedBodiesKeepTheConnection(t *testing.T) {
	var log lockedBuffer
	addr := served(t, Config{
		Upstream: "http://127.0.0.1:9",
		Decider: decider(func(*httpverdict.Request) *httpverdict.Verdict {
			return &httpverdict.Verdict{Kind: httpverdict.Limited, ID: "id", Rule: "r", Code: "limited", Binding: -1}
		}),
	}, ServerConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var dials atomic.Int32
			transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return new(net.Dialer).DialContext(ctx, network, address)
			}}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: patience}
			for range 200 {
				res, err := client.Post("http://"+addr, "text/plain", strings.NewReader("user=a&password=b"))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if res.StatusCode != http.StatusTooManyRequests {
					t.Errorf("got %d", res.StatusCode)
				}
			}
			// net/http's client gives a connection up if its own writer takes more than 50 ms to say that it is done, which a busy
			// machine can bring about a few times.
			if n := dials.Load(); n > 20 {
				t.Errorf("200 requests took %d connections", n)
			}
		})
	}
	wg.Wait()
	if strings.Contains(log.String(), "panic") {
		t.Errorf("the server panicked: %.500s", log.String())
	}
}
