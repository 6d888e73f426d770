package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// field is one line of a header block, as a client may send it: no library in between corrects it.
type field [2]string

// sayH2 sends one request over h2c and returns its status, 0 if the stream or the connection was ended instead.
func sayH2(t *testing.T, addr string, fields []field, body string) string {
	t.Helper()
	conn := dialGateway(t, addr)
	io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.AllowIllegalWrites = true
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range fields {
		encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	framer.WriteSettings()
	framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: body == ""})
	if body != "" {
		framer.WriteData(1, true, []byte(body))
	}
	for {
		frame, err := framer.ReadFrame()
		var stream http2.StreamError
		switch {
		case errors.As(err, &stream):
			return "refused"
		case err != nil:
			return "closed"
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			return f.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return "refused"
		case *http2.SettingsFrame:
			if !f.IsAck() {
				framer.WriteSettingsAck()
			}
		}
	}
}

func TestSmugglingOverHTTP2(t *testing.T) {
	request := func(method, path string, more ...field) []field {
		return append([]field{{":method", method}, {":scheme", "http"}, {":authority", "shop.example"}, {":path", path}}, more...)
	}
	get := []string{"GET shop.example/"}
	for _, c := range []struct {
		name      string
		fields    []field
		body      string
		status    []string // any of them
		forwarded []string
	}{
		{"plain", request("GET", "/"), "", []string{"200"}, get},
		{"Connection", request("GET", "/", field{"connection", "close"}), "", []string{"400", "refused"}, nil},
		{"Connection names a dimension", request("GET", "/", field{"x-user-id", "u"}, field{"connection", "x-user-id"}), "", []string{"400", "refused"}, nil},
		{"Transfer-Encoding", request("POST", "/", field{"transfer-encoding", "chunked"}), "0\r\n\r\nGET /x HTTP/1.1\r\n\r\n", []string{"400", "refused"}, nil},
		{"Upgrade", request("GET", "/", field{"upgrade", "websocket"}), "", []string{"400", "refused"}, nil},
		{"Keep-Alive", request("GET", "/", field{"keep-alive", "1"}), "", []string{"400", "refused"}, nil},
		{"Te", request("GET", "/", field{"te", "gzip"}), "", []string{"400", "refused"}, nil},
		{"a request line in the path", request("GET", "/x HTTP/1.1\r\nX: y"), "", []string{"400", "refused", "closed"}, nil},
		{"a space in the path", request("GET", "/x HTTP/1.1"), "", []string{"200", "400", "refused"}, []string{"GET shop.example/x%20HTTP/1.1"}},
		{"a space in the query", request("GET", "/x?a HTTP/1.1"), "", []string{"400", "refused"}, nil},
		{"a line break in the query", request("GET", "/x?a\r\nX: y"), "", []string{"400", "refused", "closed"}, nil},
		{"a path without a slash", request("GET", "x"), "", []string{"400", "refused"}, nil},
		{"an asterisk", request("GET", "*"), "", []string{"400", "refused"}, nil},
		{"a space in the method", request("GET / HTTP/1.1", "/"), "", []string{"400", "refused", "closed"}, nil},
		{"a line break in a value", request("GET", "/", field{"x", "a\r\nContent-Length: 5"}), "", []string{"400", "refused", "closed"}, nil},
		{"a null byte in a value", request("GET", "/", field{"x", "a\x00b"}), "", []string{"400", "refused", "closed"}, nil},
		{"a line break in a name", request("GET", "/", field{"x\r\ny", "a"}), "", []string{"400", "refused", "closed"}, nil},
		{"a colon in a name", request("GET", "/", field{"x: y", "a"}), "", []string{"400", "refused", "closed"}, nil},
		{"capitals in a name", request("GET", "/", field{"X-User", "a"}), "", []string{"400", "refused", "closed"}, nil},
		{"two paths", request("GET", "/", field{":path", "/x"}), "", []string{"400", "refused", "closed"}, nil},
		{"another host", request("GET", "/", field{"host", "other.example"}), "", []string{"200", "400", "refused"}, get},
		{"two authorities", request("GET", "/", field{":authority", "other.example"}), "", []string{"400", "refused", "closed"}, nil},
		{"a user in the authority", []field{{":method", "GET"}, {":scheme", "http"}, {":authority", "a@shop.example"}, {":path", "/"}}, "", []string{"400", "refused"}, nil},
		{"a line break in the authority", []field{{":method", "GET"}, {":scheme", "http"}, {":authority", "x\r\nX: y"}, {":path", "/"}}, "", []string{"400", "refused", "closed"}, nil},
		{"more body than announced", request("POST", "/", field{"content-length", "1"}), "abc", []string{"400", "refused"}, nil},
		{"a body", request("POST", "/", field{"content-length", "3"}), "abc", []string{"200"}, []string{"POST shop.example/"}},
		{"a body that looks like a request", request("POST", "/"), "0\r\n\r\nGET /x HTTP/1.1\r\n\r\n", []string{"200"}, []string{"POST shop.example/"}},
		{"CONNECT", []field{{":method", "CONNECT"}, {":authority", "other.example:443"}}, "", []string{"405", "refused"}, nil},
		{"TRACE", request("TRACE", "/"), "", []string{"405"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSmuggler(t, shortly)
			status := sayH2(t, s.addr, c.fields, c.body)
			if !slices.Contains(c.status, status) {
				t.Errorf("answer %s, want one of %s", status, c.status)
			}
			if status != "200" {
				c.forwarded = nil
			}
			s.check(t, c.forwarded)
		})
	}
}

// A stream that ends before its announced length: the service must not take the part for the whole.
func TestShortStreamIsNoWholeBody(t *testing.T) {
	read := make(chan error, 1)
	t.Cleanup(func() { // after the service has ended, which waits for its handlers
		select {
		case err := <-read:
			if err == nil {
				t.Error("the service read a whole body")
			}
		default: // it was refused before anything was forwarded
		}
	})
	service := upstreamServer(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
	})
	fields := []field{{":method", "POST"}, {":scheme", "http"}, {":authority", "x"}, {":path", "/"}, {"content-length", "9"}}
	if status := sayH2(t, served(t, Config{Upstream: service}, ServerConfig{}), fields, "abc"); status != "400" && status != "refused" {
		t.Errorf("answer %s", status)
	}
}
