package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/policy"
)

// gatewayPolicy is one rule by address that allows everything.
const gatewayPolicy = `
version: 1
rules:
  - name: site
    key: [ip]
    limits: [token_bucket 1000000/s burst=1000000]
`

// upstreamConf is a service that costs as little as it can: nginx that answers from memory.
const upstreamConf = `
keepalive_requests 1000000000;
server {
  listen 127.0.0.1:${PORT} reuseport backlog=1024;
  location / { default_type text/plain; return 200 "hello, world: this is the service behind the gate\n"; }
}`

// nginxConf limits and forwards as Headgate does.
const nginxConf = `
keepalive_requests 1000000000;
limit_req_zone $binary_remote_addr zone=site:10m rate=1000000r/s;
upstream service { server UPSTREAM; keepalive 256; keepalive_requests 1000000000; }
server {
  listen 127.0.0.1:${PORT} reuseport backlog=1024;
  location / {
    limit_req zone=site burst=1000000 nodelay;
    proxy_pass http://service;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  }
}`

func gatewayOverhead() section {
	return section{
		Name: "gateway", Title: "The gateway, in-process store, one rule by address",
		notes: "wrk, the proxy and the service (an nginx that answers from memory) share the machine. The comparison on one connection is " +
			"of latency, on 64 of throughput. (n×) is how many times worse than Headgate.",
		columns: []column{
			{"p50 µs, 1 connection", lower, 0}, {"p99 µs, 1 connection", "", 0}, {"requests/s, 64 connections", higher, 0},
			{"p99 µs, 64 connections", "", 0},
		},
		open: openGatewaySection,
	}
}

func openGatewaySection(tb testservers.TB) ([]contender, error) {
	wrk := testservers.Need(tb, "wrk")
	upstream := testservers.Nginx(tb, upstreamConf)
	guarded, err := startGateway(upstream.URL())
	if err != nil {
		return nil, err
	}
	bare, err := startBareProxy(upstream.URL())
	if err != nil {
		return nil, err
	}
	peer := testservers.Nginx(tb, replaceUpstream(nginxConf, upstream.Addr()))
	list := []contender{
		{name: "Headgate gateway", try: load(wrk, guarded.url), close: guarded.close},
		{name: "bare httputil.ReverseProxy", try: load(wrk, bare.url), close: bare.close},
		{name: "nginx limit_req and proxy_pass", try: load(wrk, peer.URL())},
		{name: "(the service alone)", try: load(wrk, upstream.URL())},
	}
	return list, nil
}

// front is an HTTP server in this process.
type front struct {
	url   string
	close func() error
}

func startGateway(upstream string) (front, error) {
	p, err := policy.Parse("bench", []byte(gatewayPolicy), policy.ParseConfig{})
	if err != nil {
		return front{}, err
	}
	store := memstore.New(memstore.Config{})
	engine, err := policy.NewEngine(p, store, policy.EngineConfig{})
	if err != nil {
		return front{}, err
	}
	gw, err := gateway.New(gateway.Config{Upstream: upstream, Decider: engine})
	if err != nil {
		return front{}, err
	}
	server, err := gateway.NewServer(gateway.ServerConfig{Handler: gw})
	if err != nil {
		return front{}, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return front{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, l) }()
	return front{"http://" + l.Addr().String(), func() error {
		cancel()
		return errors.Join(<-ended, gw.Close(), store.Close())
	}}, nil
}

// startBareProxy is the proxy that one writes in five lines, but for a pool of connections large enough for the load.
func startBareProxy(upstream string) (front, error) {
	target, err := url.Parse(upstream)
	if err != nil {
		return front{}, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return front{}, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		Transport: &http.Transport{MaxIdleConnsPerHost: 256},
		ErrorLog:  log.New(io.Discard, "", 0), // wrk breaks off its last requests
	}}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return front{"http://" + l.Addr().String(), func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}}, nil
}
