package salehttp

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// still is a sale in which nothing happens.
type still struct {
	Sales
	follow func(ctx context.Context, last engine.Result) (engine.Result, error)
}

var held = engine.Result{RID: "r", Key: flashsale.Key{Sale: "eleven", SKU: "phone"}, Quantity: 1, State: flashsale.Reserved, Version: 1}

func (s still) Result(context.Context, flashsale.Key, string, string) (engine.Result, error) {
	return held, nil
}

func (s still) Follow(ctx context.Context, _ flashsale.Key, _, _ string, last engine.Result) (engine.Result, error) {
	return s.follow(ctx, last)
}

func (s still) CheckShown(context.Context, flashsale.Key) error { return nil }

func wait(ctx context.Context, last engine.Result) (engine.Result, error) {
	<-ctx.Done()
	return last, &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "the call was given up"}
}

// piped serves a handler over a connection without any buffer, in virtual time.
func piped(t *testing.T, h http.Handler) (client net.Conn, end func()) {
	t.Helper()
	client, server := net.Pipe()
	l := &oneConn{conn: server, closed: make(chan struct{})}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	var all sync.WaitGroup
	all.Go(func() { _ = srv.Serve(l) })
	return client, func() {
		_ = srv.Close()
		_ = client.Close()
		all.Wait()
	}
}

type oneConn struct {
	conn   net.Conn
	given  bool
	closed chan struct{}
	once   sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

func stillHandler(t *testing.T, follow func(context.Context, engine.Result) (engine.Result, error)) *Handler {
	t.Helper()
	h, err := New(Config{Sales: still{follow: follow}, Identity: byHeader, Random: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const streamRequest = "GET /_headgate/sales/eleven/skus/phone/reservations/r/events HTTP/1.1\r\nHost: x\r\nX-User: u\r\n\r\n"

// TestStreamLivesItsTime: heartbeats while nothing happens, an end after two minutes, and the connection can be used again.
func TestStreamLivesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, end := piped(t, stillHandler(t, wait))
		defer end()
		began := time.Now()
		for range 2 {
			if _, err := client.Write([]byte(streamRequest)); err != nil {
				t.Fatal(err)
			}
			read := bufio.NewReader(client)
			w, err := http.ReadResponse(read, nil)
			if err != nil {
				t.Fatal(err)
			}
			events := &stream{TB: t, body: w.Body, read: bufio.NewReader(w.Body)}
			if e, _ := events.next(); e.retry != "3000" {
				t.Errorf("%+v", e)
			}
			events.is("reserved", "1")
			beats := 0
			for e, ok := events.next(); ok; e, ok = events.next() {
				if beats++; e != (event{}) {
					t.Errorf("an event %+v", e)
				}
			}
			if took := time.Since(began); took != 2*time.Minute || beats < 7 || beats > 8 { // the last one and the end are of one moment
				t.Errorf("it lives for %s, with %d heartbeats", took, beats)
			}
			began = time.Now()
		}
	})
}

// TestReaderWhoTakesNothing is dropped after 10 s, and its place is free.
func TestReaderWhoTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := stillHandler(t, wait)
		client, end := piped(t, h)
		defer end()
		if _, err := client.Write([]byte(streamRequest)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if h.streams.open() != 1 {
			t.Fatalf("%d streams", h.streams.open())
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if h.streams.open() != 0 {
			t.Errorf("%d streams are open still", h.streams.open())
		}
	})
}

// TestReaderWhoGoesAway costs nothing from then on.
func TestReaderWhoGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := stillHandler(t, wait)
		client, end := piped(t, h)
		defer end()
		if _, err := client.Write([]byte(streamRequest)); err != nil {
			t.Fatal(err)
		}
		w, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		events := &stream{TB: t, body: w.Body, read: bufio.NewReader(w.Body)}
		_, _ = events.next()
		events.is("reserved", "1")
		began := time.Now()
		_ = client.Close()
		synctest.Wait()
		if h.streams.open() != 0 || time.Since(began) != 0 {
			t.Errorf("%d streams after %s", h.streams.open(), time.Since(began))
		}
	})
}

// TestStreamThatCannotBeFollowed ends, and does not spin.
func TestStreamThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	for _, code := range []flashsale.Code{flashsale.CodeBusy, flashsale.CodeNotFound, flashsale.CodeInternal} {
		asked := 0
		h := stillHandler(t, func(context.Context, engine.Result) (engine.Result, error) {
			asked++
			return engine.Result{}, &flashsale.Error{Code: code}
		})
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/_headgate/sales/eleven/skus/phone/reservations/r/events", nil)
		r.Header.Set("X-User", "u")
		h.ServeHTTP(w, r)
		if asked != 1 || w.Code != 200 || !strings.HasSuffix(w.Body.String(), "\n\n") {
			t.Errorf("%s: asked %d times, %d %s", code, asked, w.Code, w.Body)
		}
	}
}

// TestPanicInAStream cuts the connection: half a stream must not pass for a whole one.
func TestPanicInAStream(t *testing.T) {
	t.Parallel()
	h := stillHandler(t, func(context.Context, engine.Result) (engine.Result, error) { panic("a fault") })
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || h.streams.open() != 0 {
			t.Errorf("recovered %v, %d streams", p, h.streams.open())
		}
	}()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/_headgate/sales/eleven/skus/phone/reservations/r/events", nil)
	r.Header.Set("X-User", "u")
	h.ServeHTTP(httptest.NewRecorder(), r)
}
