package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// peeking is a policy that looks at bodies of up to 64 bytes, and denies where it is told to.
func peeking(wait time.Duration, saw chan<- error, deny bool) decider {
	return func(r *httpverdict.Request) *httpverdict.Verdict {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		_, err := r.Body.Peek(ctx, 64)
		saw <- err
		if deny {
			return &httpverdict.Verdict{Kind: httpverdict.Forbidden, Binding: -1}
		}
		return &httpverdict.Verdict{Binding: -1}
	}
}

func TestBoundsHoldWhilePeeking(t *testing.T) {
	for _, c := range []struct{ name, request, want string }{
		{"too long", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n01234567890123456789\r\n0\r\n\r\n", "413"},
		{"too long, as it says", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n01234567890123456789", "413"},
		{"too slow", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhello", "408"},
		{"malformed", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n", "400"},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := upstreamServer(t, func(_ http.ResponseWriter, r *http.Request) {
				if text, err := io.ReadAll(r.Body); err == nil {
					t.Errorf("the service got %q as a whole body", text)
				}
			})
			saw := make(chan error, 1)
			addr := served(t, Config{Upstream: service, Decider: peeking(patience, saw, false), MaxRequestBody: 10, Stall: briefly}, ServerConfig{})
			if got := see(t, addr, "POST", c.request); got.summary() != c.want {
				t.Errorf("answer %s, want %s", got, c.want)
			}
			if err := <-saw; err == nil || errors.Is(err, httpverdict.ErrBodyTooLarge) {
				t.Errorf("the policy saw %v", err)
			}
		})
	}
}

// trickle gives its parts when it is told to.
type trickle struct{ parts chan string }

func (s trickle) Read(p []byte) (int, error) {
	part, more := <-s.parts
	if !more {
		return 0, io.EOF
	}
	return copy(p, part), nil
}

func TestPeekOverHTTP2(t *testing.T) {
	for _, deny := range []bool{false, true} {
		got := make(chan string, 1)
		service := protocolServer(t, func(_ http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Errorf("body: %v", err)
			}
			got <- string(text) + " " + r.Trailer.Get("X-Sum")
		})
		saw := make(chan error, 1)
		addr := served(t, Config{Upstream: "h2c://" + service, Decider: peeking(briefly, saw, deny)}, ServerConfig{})
		parts := make(chan string, 1)
		parts <- "hello"
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, trickle{parts})
		if err != nil {
			t.Fatal(err)
		}
		req.Trailer = http.Header{"X-Sum": {"10"}}
		go func() {
			if err := <-saw; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the policy saw %v", err)
			}
			parts <- "world"
			close(parts)
		}()
		res, err := client(t, h2c).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if deny {
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("denied: %d", res.StatusCode)
			}
			continue
		}
		if text := <-got; text != "helloworld 10" || res.StatusCode != http.StatusOK {
			t.Errorf("%d, the service got %q", res.StatusCode, text)
		}
	}
}

func TestMarkWithUnderscores(t *testing.T) {
	seen := make(chan http.Header, 1)
	service := upstreamServer(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	addr := served(t, Config{Upstream: service, KeepUnderscores: true}, ServerConfig{})
	see(t, addr, "GET", "GET / HTTP/1.1\r\nHost: x\r\nHEADGATE_OVER: forged\r\nHeadgate_over: forged\r\nX_A: kept\r\n\r\n")
	for name, values := range <-seen {
		if strings.Contains(strings.ToLower(name), "over") {
			t.Errorf("the service saw %s %v", name, values)
		}
		if strings.EqualFold(name, "x_a") && values[0] != "kept" {
			t.Errorf("X_A is %v", values)
		}
	}
}
