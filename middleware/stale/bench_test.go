package stale

import (
	"net/http"
	"testing"
)

// nowhere is a client that costs nothing.
type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header       { return n.h }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

func BenchmarkDenialAnsweredWithWhatIsKept(b *testing.B) {
	c := mustNew(b, Config{})
	for name, identity := range map[string]string{"for everybody": "", "for one": "user=u1"} {
		b.Run(name, func(b *testing.B) {
			q := ask("/products/17", identity, "Accept-Language", "en", "Cookie", "session=0123456789abcdef")
			_, k := c.Join(b.Context(), q)
			k.Header(200, fields("Content-Type", "text/html", "Vary", "Accept-Language", "Etag", `"1"`))
			k.Write(make([]byte, 10_000))
			k.End(true)
			r := &http.Request{Method: http.MethodGet, Header: q.Header}
			b.ReportAllocs()
			for b.Loop() {
				c.Kept(q).Write(nowhere{make(http.Header, 8)}, r)
			}
		})
	}
}

func BenchmarkLead(b *testing.B) {
	c := mustNew(b, Config{})
	q := ask("/products/17", "", "Accept-Language", "en")
	h, body := fields("Content-Type", "text/html", "Vary", "Accept-Language", "Content-Length", "10000"), make([]byte, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		_, k := c.Join(b.Context(), q)
		k.Header(200, h)
		k.Write(body)
		k.End(true)
		k.Close()
	}
}
