package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// h2Flooder is a client of HTTP/2 that keeps to no rule.
type h2Flooder struct {
	conn    *net.TCPConn
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
}

func newH2Flooder(t *testing.T, addr string) *h2Flooder {
	t.Helper()
	f := &h2Flooder{conn: dialGateway(t, addr)}
	io.WriteString(f.conn, http2.ClientPreface)
	f.framer = http2.NewFramer(f.conn, f.conn)
	f.framer.AllowIllegalWrites = true
	f.encoder = hpack.NewEncoder(&f.block)
	f.framer.WriteSettings()
	return f
}

// pongs reads to the end, and closes what it returns at the first answer to a ping.
func (f *h2Flooder) pongs() <-chan struct{} {
	heard := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(heard) })
		defer once()
		for {
			frame, err := f.framer.ReadFrame()
			if err != nil {
				_, _ = io.Copy(io.Discard, f.conn)
				return
			}
			if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
				once()
			}
		}
	}()
	return heard
}

func (f *h2Flooder) fields(more ...field) []byte {
	f.block.Reset()
	all := append([]field{{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}, {":path", "/"}}, more...)
	for _, h := range all {
		f.encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	return f.block.Bytes()
}

// ended reads until the server ends the connection.
func (f *h2Flooder) ended(t *testing.T) {
	t.Helper()
	if _, err := io.Copy(io.Discard, f.conn); err != nil && !isReset(err) {
		t.Errorf("the connection stays open: %v", err)
	}
}

// Streams that are opened and reset at once cost the service no more than may be open at a time, and each that was judged
// is reported.
func TestRapidReset(t *testing.T) {
	const streams = 8
	var now, most, judged, done, there atomic.Int64
	service := upstreamServer(t, func(_ http.ResponseWriter, r *http.Request) {
		there.Add(1)
		<-r.Context().Done()
		there.Add(-1)
	})
	pour := make(chan struct{}) // the first are held until there are as many as there may be, or what is reset may be over before the next comes
	addr, stop := running(t, Config{Upstream: service, Decider: decider(func(*httpverdict.Request) *httpverdict.Verdict {
		judged.Add(1)
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		<-pour
		return &httpverdict.Verdict{Binding: -1, Done: func(context.Context, httpverdict.Result) { now.Add(-1); done.Add(1) }}
	})}, ServerConfig{MaxStreams: streams})
	f := newH2Flooder(t, addr)
	heard := f.pongs()
	for i := range 20_000 {
		if i == 3*streams {
			f.framer.WritePing(false, [8]byte{})
			<-heard // all that came before was taken in
			until(t, "there are as many as there may be", func() bool { return most.Load() >= streams })
			close(pour)
		}
		id := uint32(2*i + 1)
		if f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(), EndHeaders: true, EndStream: true}) != nil ||
			f.framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			break // the server has had enough, which is well
		}
	}
	until(t, "each is over, at the service too", func() bool { return judged.Load() == done.Load() && there.Load() == 0 }) // while the connections live
	f.conn.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if judged.Load() != done.Load() || judged.Load() == 0 {
		t.Errorf("%d requests were judged, %d were over", judged.Load(), done.Load())
	}
	if m := most.Load(); m > streams { // the service learns of a reset a little later, how much depends on who is quicker
		t.Errorf("%d requests were on their way to the service at a time, want %d", m, streams)
	}
}

func TestHugeHeadersOverHTTP2(t *testing.T) {
	addr := served(t, Config{Upstream: upstreamServer(t, func(http.ResponseWriter, *http.Request) {})}, ServerConfig{MaxHeaderBytes: 16 << 10})
	t.Run("one field", func(t *testing.T) {
		fields := []field{{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}, {":path", "/"}, {"x", strings.Repeat("y", 12<<10)}, {"z", strings.Repeat("y", 12<<10)}}
		if status := sayH2Long(t, addr, fields); status != "431" && status != "refused" && status != "closed" {
			t.Errorf("answer %s", status)
		}
	})
	// One byte names a field of 4 kB in the table that both sides keep.
	t.Run("bomb", func(t *testing.T) {
		f := newH2Flooder(t, addr)
		f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields(field{"x", strings.Repeat("y", 4000)}), EndHeaders: true, EndStream: true})
		bomb := append(bytes.Clone(f.fields()), bytes.Repeat([]byte{0x80 | 62}, 16<<10)...)
		f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: bomb, EndHeaders: true, EndStream: true})
		before := heap()
		if status := answerOf(t, f, 3); status != "431" && status != "refused" && status != "closed" {
			t.Errorf("answer %s to a header of %d MB", status, 16*4000>>10)
		}
		if grown := int64(heap()) - int64(before); grown > 8<<20 {
			t.Errorf("the heap grew by %d MB", grown>>20)
		}
	})
	t.Run("without end", func(t *testing.T) {
		f := newH2Flooder(t, addr)
		go func() {
			f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields()})
			for f.framer.WriteContinuation(1, false, f.fields(field{"x", strings.Repeat("y", 8<<10)})) == nil {
			}
		}()
		f.ended(t)
	})
}

func sayH2Long(t *testing.T, addr string, fields []field) string {
	f := newH2Flooder(t, addr)
	block := f.fields(fields[4:]...)
	f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:8<<10], EndStream: true})
	for block = block[8<<10:]; len(block) > 0; {
		n := min(len(block), 8<<10)
		f.framer.WriteContinuation(1, n == len(block), block[:n])
		block = block[n:]
	}
	return answerOf(t, f, 1)
}

func answerOf(t *testing.T, f *h2Flooder, stream uint32) string {
	f.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := f.framer.ReadFrame()
		var netErr net.Error
		switch {
		case errors.As(err, &netErr) && netErr.Timeout():
			t.Fatal("no answer")
		case err != nil:
			return "closed"
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if frame.StreamID == stream {
				return frame.PseudoValue("status")
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == stream {
				return "refused"
			}
		case *http2.GoAwayFrame:
			return "closed"
		}
	}
}

// A header that comes in drops is cut as well: the time without a stream counts as idle.
func TestSlowHeadersOverHTTP2AreCut(t *testing.T) {
	addr := served(t, Config{Upstream: "http://127.0.0.1:9"}, ServerConfig{IdleTimeout: briefly})
	f := newH2Flooder(t, addr)
	stopped := make(chan struct{})
	t.Cleanup(func() { <-stopped })
	go func() {
		defer close(stopped)
		drop := time.NewTicker(briefly / 10)
		defer drop.Stop()
		f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.fields()})
		for f.framer.WriteContinuation(1, false, f.fields(field{"x", "y"})) == nil {
			<-drop.C
		}
	}()
	start := time.Now()
	f.ended(t)
	if took := time.Since(start); took > patience/2 {
		t.Errorf("it took %s", took)
	}
	f.conn.Close()
}
