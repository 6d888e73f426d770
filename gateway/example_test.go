package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// allowAll stands for a policy, which package policy makes from a file.
type allowAll struct{}

func (allowAll) Decide(context.Context, *httpverdict.Request) *httpverdict.Verdict {
	return &httpverdict.Verdict{Binding: -1}
}

func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from %s", r.URL.Path)
	}))
	defer service.Close()

	gate, err := gateway.New(gateway.Config{Upstream: service.URL, Decider: allowAll{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()
	server, err := gateway.NewServer(gateway.ServerConfig{Handler: gate})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener) }()

	res, err := http.Get("http://" + listener.Addr().String() + "/a/../shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	fmt.Println(res.StatusCode, string(body))

	http.DefaultClient.CloseIdleConnections()
	stop() // drains
	fmt.Println(<-ended)
	// Output:
	// 200 hello from /shop
	// <nil>
}
