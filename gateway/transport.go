package gateway

import (
	"context"
	"net"
	"net/http"
	"time"
)

// continueTimeout is how long a body is held back for a service that was asked whether it wants it.
const continueTimeout = time.Second

// connect makes the way to the service. A websocket begins in HTTP/1.1, for which one that is spoken to in h2c needs
// connections of another kind; towards https the transport sees to that.
func (g *Gateway) connect() {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!g.up.h2c)
	protocols.SetHTTP2(!g.up.h2c)
	protocols.SetUnencryptedHTTP2(g.up.h2c)
	g.transport = g.newTransport(protocols)
	g.upgrades = g.transport
	if g.up.h2c {
		protocols = new(http.Protocols)
		protocols.SetHTTP1(true)
		g.upgrades = g.newTransport(protocols)
	}
}

// dial connects to the service.
func (g *Gateway) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: g.cfg.ConnectTimeout}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newGuardedConn(conn, g.cfg.Stall, g.cfg.MinRate), nil
}

func (g *Gateway) newTransport(protocols *http.Protocols) *http.Transport {
	return &http.Transport{
		Protocols:              protocols,
		TLSClientConfig:        g.cfg.UpstreamTLS.Clone(),
		TLSHandshakeTimeout:    g.cfg.ConnectTimeout,
		ResponseHeaderTimeout:  max(g.cfg.ResponseTimeout, 0),
		MaxResponseHeaderBytes: maxAnswerHead,
		ExpectContinueTimeout:  continueTimeout,
		IdleConnTimeout:        60 * time.Second,
		MaxIdleConns:           g.cfg.MaxIdleConns,
		MaxIdleConnsPerHost:    g.cfg.MaxIdleConns,
		DisableCompression:     true, // bodies pass as they are
		ReadBufferSize:         16 << 10,
		WriteBufferSize:        16 << 10,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:               30 * time.Second,
			PingTimeout:                   15 * time.Second,
			MaxReceiveBufferPerConnection: 4<<20 - 1,
			MaxReceiveBufferPerStream:     1 << 20,
		},
		DialContext: g.dial,
	}
}
