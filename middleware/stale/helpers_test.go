package stale

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustNew(t testing.TB, cfg Config) *Cache {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask returns the query of a GET with header fields, name and value in turn.
func ask(path, identity string, fields ...string) *Query {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return &Query{
		Method: http.MethodGet, Host: "shop.example", Path: path, Header: h,
		Stale: &httpverdict.Stale{Identity: identity, MaxAge: time.Hour},
	}
}

// fields returns a header, name and value in turn.
func fields(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// fill has a query served with an answer. It fails if the query is not one that goes to the service.
func fill(t *testing.T, c *Cache, q *Query, status int, body string, h http.Header) {
	t.Helper()
	a, k := c.Join(t.Context(), q)
	if a != nil || k == nil {
		t.Fatalf("answer %v, keeping %v, want the latter", a, k)
	}
	if k.Header(status, h) {
		k.Write([]byte(body))
	}
	k.End(true)
	k.Close()
}

// got writes an answer out; the status is 0 if there is none.
func got(a *Answer, q *Query) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	w.Code = 0
	if a != nil {
		a.Write(w, &http.Request{Method: q.Method, Header: q.Header})
	}
	return w
}

// kept returns what would be given in place of a denial, "" for nothing.
func kept(c *Cache, q *Query) string { return got(c.Kept(q), q).Body.String() }
