package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

const lookAt = 64 << 10

// lookingAt looks at what asks for it, and denies where it is told to.
func lookingAt(r *httpverdict.Request) *httpverdict.Verdict {
	if r.Body != nil && r.Header.Get("X-Look") != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.Header.Get("X-Look")[0]-'0')*time.Millisecond)
		defer cancel()
		_, _ = r.Body.Peek(ctx, lookAt) // whatever comes of it
	}
	if r.Header.Get("X-Deny") != "" {
		return &httpverdict.Verdict{Kind: httpverdict.Forbidden, Binding: -1}
	}
	return &httpverdict.Verdict{Binding: -1}
}

// writeRequest writes a request with a body in any framing, and returns the body.
func writeRequest(to *bytes.Buffer, random *rand.Rand, deny bool) []byte {
	sizes := []int{0, 1, 511, 512, firstBuffer, lookAt - 1, lookAt, lookAt + 1, lookAt + 2, 200_000}
	body := make([]byte, sizes[random.IntN(len(sizes))])
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	to.WriteString("POST / HTTP/1.1\r\nHost: x\r\n")
	if random.IntN(4) > 0 {
		fmt.Fprintf(to, "X-Look: %d\r\n", random.IntN(10))
	}
	if deny {
		to.WriteString("X-Deny: 1\r\n")
	}
	if random.IntN(2) == 0 {
		fmt.Fprintf(to, "Content-Length: %d\r\n\r\n", len(body))
		to.Write(body)
		return body
	}
	to.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	for rest := body; len(rest) > 0; {
		n := min(len(rest), 1+random.IntN(40_000))
		fmt.Fprintf(to, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	to.WriteString("0\r\n\r\n")
	return body
}

const firstBuffer = 4 << 10

// Requests that follow each other without a pause on one connection: each body arrives whole, whether and how long the policy
// looks at it, and no byte of one is taken for the next request.
func TestLooksKeepTheConnectionInStep(t *testing.T) {
	for _, protocol := range []string{"http", "h2c"} {
		service := protocolServer(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Errorf("body: %v", err)
			}
			w.Write(body)
		})
		addr := served(t, Config{Upstream: protocol + "://" + service, Decider: decider(lookingAt)}, ServerConfig{})
		for seed := range uint64(12) {
			pipeline(t, addr, rand.New(rand.NewPCG(seed, 1)))
		}
	}
}

func pipeline(t *testing.T, addr string, random *rand.Rand) {
	t.Helper()
	var sent bytes.Buffer
	var bodies [][]byte
	for range 1 + random.IntN(10) {
		bodies = append(bodies, writeRequest(&sent, random, false))
	}
	writeRequest(&sent, random, true)
	conn := dialGateway(t, addr)
	defer conn.Close()
	go func() {
		for text := sent.Bytes(); len(text) > 0; {
			n := min(len(text), 1+random.IntN(50_000))
			if _, err := conn.Write(text[:n]); err != nil {
				return // the last one is denied, and may not be read
			}
			text = text[n:]
		}
	}()
	in := bufio.NewReader(conn)
	for i, want := range bodies {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
			t.Fatalf("answer %d: %d, %d bytes %v; want the %d that were sent", i, res.StatusCode, len(got), err, len(want))
		}
	}
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusForbidden {
		t.Fatalf("the denied one: %v %v", res, err)
	}
}
