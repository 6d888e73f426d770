//go:build unix

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The gateway beside a bare httputil.ReverseProxy with a transport that keeps enough connections, in front of the same
// service, in one run and in turns. The client is a raw connection, so that it costs as little as can be.

// Goroutines inherit their labels, so a profile can be split: go tool pprof -tagfocus gateway.

func labelled(part string, start func()) {
	pprof.Do(context.Background(), pprof.Labels("part", part), func(context.Context) { start() })
}

func proxies(b *testing.B) (bare, gated string) {
	var service *httptest.Server
	labelled("service", func() {
		service = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "hello, world, from the service\n")
		}))
	})
	b.Cleanup(service.Close)
	target, err := url.Parse(service.URL)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	var server *httptest.Server
	labelled("bare", func() {
		server = httptest.NewServer(&httputil.ReverseProxy{
			Transport: transport,
			Rewrite: func(pr *httputil.ProxyRequest) {
				pr.SetURL(target)
				pr.SetXForwarded()
			},
		})
	})
	b.Cleanup(server.Close)
	labelled("gateway", func() { gated = served(b, Config{Upstream: service.URL}, ServerConfig{}) })
	return server.Listener.Addr().String(), gated
}

const benchRequest = "GET /shop/products/17?page=2 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench/1\r\nAccept: */*\r\nCookie: session=0123456789abcdef\r\n\r\n"

type wire struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialWire(b *testing.B, addr string) *wire {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return &wire{conn, bufio.NewReader(conn)}
}

// ask sends one request and reads the whole answer.
func (w *wire) ask() error {
	if _, err := io.WriteString(w.conn, benchRequest); err != nil {
		return err
	}
	length := -1
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
		if digits, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(digits))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("an answer without a length")
	}
	_, err := w.in.Discard(length)
	return err
}

func BenchmarkOneConnection(b *testing.B) {
	bare, gated := proxies(b)
	sides := []struct {
		name string
		wire *wire
		took []time.Duration
	}{{name: "bare", wire: dialWire(b, bare)}, {name: "gateway", wire: dialWire(b, gated)}}
	order := []int{0, 1}
	for b.Loop() {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] }) // who comes first pays for waking up
		for _, i := range order {
			start := time.Now()
			if err := sides[i].wire.ask(); err != nil {
				b.Fatal(err)
			}
			sides[i].took = append(sides[i].took, time.Since(start))
		}
	}
	medians := make([]time.Duration, len(sides))
	for i := range sides {
		slices.Sort(sides[i].took)
		medians[i] = sides[i].took[len(sides[i].took)/2]
		b.ReportMetric(float64(medians[i].Nanoseconds()), sides[i].name+"-median-ns")
	}
	b.ReportMetric(float64(medians[1])/float64(medians[0]), "gateway-ratio")
}

func BenchmarkManyConnections(b *testing.B) {
	bare, gated := proxies(b)
	for _, side := range []struct{ name, addr string }{{"bare", bare}, {"gateway", gated}} {
		b.Run(side.name, func(b *testing.B) {
			const connections = 64
			wires := make([]*wire, connections)
			for i := range wires {
				wires[i] = dialWire(b, side.addr)
			}
			b.ResetTimer()
			before := cpuTime(b)
			var clients sync.WaitGroup
			for i, w := range wires {
				clients.Go(func() {
					for range (b.N + i) / connections {
						if err := w.ask(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			clients.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/request")
		})
	}
}

// cpuTime is that of the whole process, client and service included; unlike the clock it does not count what else the
// machine is busy with.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
