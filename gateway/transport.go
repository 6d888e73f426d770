package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// continueTimeout is how long a body is held back for a service that was asked whether it wants it.
const continueTimeout = time.Second

// connect makes the way to an upstream. A websocket begins in HTTP/1.1, for which one that is spoken to in h2c needs
// connections of another kind; towards https the transport sees to that.
func (g *Gateway) connect(u *upstream) {
	protocols, most := new(http.Protocols), 0
	protocols.SetHTTP1(!u.h2c)
	protocols.SetHTTP2(!u.h2c)
	protocols.SetUnencryptedHTTP2(u.h2c)
	if u.h2c || u.scheme == "https" {
		most = laneStreams
	}
	u.lanes = newLanes(most, func() *http.Transport { return g.newTransport(protocols) })
	u.upgrades = u.lanes.first()
	if u.h2c {
		plain := new(http.Protocols)
		plain.SetHTTP1(true)
		u.upgrades = g.newTransport(plain)
	}
}

// dialError is a connection that could not be made: nothing of the request that wanted it was sent on it.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// dial connects to an upstream.
func (g *Gateway) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: g.cfg.ConnectTimeout}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, dialError{err}
	}
	return newGuardedConn(conn, g.cfg.Stall, g.cfg.MinRate), nil
}

// probe tells whether an ejected upstream can be reached, or says that it is well.
func (g *Gateway) probe(ctx context.Context, u *upstream) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.ConnectTimeout)
	defer cancel()
	path := g.cfg.Ejection.HealthPath
	if path == "" {
		conn, err := g.dial(ctx, "tcp", u.host)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	req := (&http.Request{
		Method: http.MethodGet, Header: http.Header{"User-Agent": {"headgate"}}, Host: u.host,
		URL: &url.URL{Scheme: u.scheme, Host: u.host, Opaque: u.base + path},
	}).WithContext(ctx)
	res, err := u.lanes.first().RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("%s is answered %d", path, res.StatusCode)
	}
	return nil
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
			MaxReceiveBufferPerConnection: 4<<20 - 1, // the most that net/http takes
			MaxReceiveBufferPerStream:     streamBuffer,
		},
		DialContext: g.dial,
	}
}
