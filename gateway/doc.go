// Package gateway is a reverse proxy that applies a policy: what the policy denies is answered here, what it allows goes to
// the service behind. It streams in both directions, passes websockets, speaks HTTP/1.1 and HTTP/2 on both sides, and
// forwards exactly what was judged.
//
//	gw, err := gateway.New(gateway.Config{Upstream: "http://127.0.0.1:9000", Decider: policy})
//	server, err := gateway.NewServer(gateway.ServerConfig{Handler: gw})
//	err = server.Run(ctx, listener) // until ctx ends; then it drains
//
// docs/gateway.md says which headers are changed and what is refused.
package gateway
