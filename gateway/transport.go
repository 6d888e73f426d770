package gateway

import (
	"context"
	"net"
	"net/http"
	"time"
)

// connect makes the ways to the service: lanes to one that speaks HTTP/1.1 without TLS, net/http's transport to others, and
// to all where the system does not let us look at an idle connection.
func (g *Gateway) connect() {
	lanes := canLook && !g.cfg.noLanes && g.up.scheme == "http"
	if lanes {
		g.lanes = newLanes(g.cfg.MaxIdleConns, func(ctx context.Context) (net.Conn, error) {
			return g.dial(ctx, "tcp", g.up.host)
		})
		g.close = g.lanes.close
	}
	if lanes && !g.up.h2c {
		return
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!g.up.h2c)
	protocols.SetHTTP2(!g.up.h2c)
	protocols.SetUnencryptedHTTP2(g.up.h2c)
	transport := g.newTransport(protocols)
	g.transport = transport
	g.close = func() {
		transport.CloseIdleConnections()
		if g.lanes != nil {
			g.lanes.close()
		}
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
