package gateway

import (
	"context"
	"net"
	"net/http"
	"time"
)

// connect makes the transports to the service.
func (g *Gateway) connect() {
	main, h1 := new(http.Protocols), new(http.Protocols)
	h1.SetHTTP1(true)
	switch {
	case g.up.h2c:
		main.SetUnencryptedHTTP2(true)
	case g.up.scheme == "https":
		main.SetHTTP1(true)
		main.SetHTTP2(true)
	default:
		main.SetHTTP1(true)
	}
	transport := g.newTransport(main)
	g.transport, g.tunnels, g.close = transport, transport, transport.CloseIdleConnections
	if g.up.h2c { // an upgrade needs HTTP/1.1
		tunnels := g.newTransport(h1)
		g.tunnels = tunnels
		g.close = func() { transport.CloseIdleConnections(); tunnels.CloseIdleConnections() }
	}
}

func (g *Gateway) newTransport(protocols *http.Protocols) *http.Transport {
	dialer := &net.Dialer{Timeout: g.cfg.ConnectTimeout}
	return &http.Transport{
		Protocols:             protocols,
		TLSClientConfig:       g.cfg.UpstreamTLS.Clone(),
		TLSHandshakeTimeout:   g.cfg.ConnectTimeout,
		ResponseHeaderTimeout: max(g.cfg.ResponseTimeout, 0),
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       60 * time.Second,
		MaxIdleConns:          g.cfg.MaxIdleConns,
		MaxIdleConnsPerHost:   g.cfg.MaxIdleConns,
		DisableCompression:    true, // bodies pass as they are
		ReadBufferSize:        16 << 10,
		WriteBufferSize:       16 << 10,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:               30 * time.Second,
			PingTimeout:                   15 * time.Second,
			MaxReceiveBufferPerConnection: 4<<20 - 1,
			MaxReceiveBufferPerStream:     1 << 20,
		},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return newGuardedConn(conn, g.cfg.Stall, g.cfg.MinRate), nil
		},
	}
}
