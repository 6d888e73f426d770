package salehttp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/headgate-io/headgate/flashsale/engine"
)

// sink is a ResponseWriter that costs nothing.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

type benched struct {
	body   []byte
	reader bytes.Reader
	r      *http.Request
}

// requests makes requests to reserve, each of a shopper of its own, with a token.
func (s *shop) requests(n int) []benched {
	all := make([]benched, n)
	for i := range all {
		user := fmt.Sprint("u", i)
		token, _, err := s.Engine.Token(s.Context(), engine.TokenRequest{Key: s.key, User: user})
		s.Must(err)
		b := &all[i]
		b.body = []byte(reserveBody(token, 1))
		b.r = s.request(ask{method: "POST", path: s.path("/reservations"), user: user, body: "x"})
		b.reset()
	}
	return all
}

func (b *benched) reset() {
	b.reader.Reset(b.body)
	b.r.Body, b.r.ContentLength = io.NopCloser(&b.reader), int64(len(b.body))
}

func (s *shop) bench(b *benched, want int) {
	b.reset()
	w := &sink{header: make(http.Header, 8)}
	s.h.ServeHTTP(w, b.r)
	if w.status != want {
		s.Fatalf("status %d", w.status)
	}
}

// BenchmarkReserve is a reserve call through the handler, on a stock in memory, from the request as net/http has read it to the answer.
func BenchmarkReserve(b *testing.B) {
	s := openShop(b, plan{total: 1_000_000_000})
	all := s.requests(b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range all {
		s.bench(&all[i], http.StatusAccepted)
	}
}

// BenchmarkReserveEngine is the same call without HTTP, to compare.
func BenchmarkReserveEngine(b *testing.B) {
	s := openShop(b, plan{total: 1_000_000_000})
	requests := make([]engine.ReserveRequest, b.N)
	for i := range requests {
		user := fmt.Sprint("u", i)
		token, _, err := s.Engine.Token(b.Context(), engine.TokenRequest{Key: s.key, User: user})
		s.Must(err)
		requests[i] = engine.ReserveRequest{Token: token, Key: s.key, User: user, Quantity: 1}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range requests {
		if _, err := s.Engine.Reserve(b.Context(), requests[i]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSoldOut is a reserve call that comes too late.
func BenchmarkSoldOut(b *testing.B) {
	s := openShop(b, plan{total: 1})
	late := s.requests(2)
	s.bench(&late[0], http.StatusAccepted)
	b.ReportAllocs()
	for b.Loop() {
		s.bench(&late[1], http.StatusConflict)
	}
}

// BenchmarkShow is what a crowd asks for that waits for an opening.
func BenchmarkShow(b *testing.B) {
	s := openShop(b, plan{total: 1000})
	r := s.request(ask{method: "GET", path: Prefix + "/eleven"})
	b.ReportAllocs()
	for b.Loop() {
		w := &sink{header: make(http.Header, 8)}
		s.h.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
}
