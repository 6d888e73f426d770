package nethttpmw

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// A client must not be able to have its mark removed: the proxy behind the middleware removes what Connection names.
func TestMarkReachesTheServiceBehindAProxy(t *testing.T) {
	var marks []string
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { marks = r.Header["Headgate-Over"] }))
	defer service.Close()
	target, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	over := decider(func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{Over: "v1;real", Binding: -1}
	})
	front := httptest.NewServer(mustNew(t, over, Config{})(httputil.NewSingleHostReverseProxy(target)))
	defer front.Close()
	for _, connection := range [][]string{nil, {"Headgate-Over"}, {"close, HEADGATE-OVER ,x"}, {"keep-alive", "headgate-over"}} {
		marks = nil
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if connection != nil {
			req.Header["Connection"] = connection
		}
		res, err := front.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if !reflect.DeepEqual(marks, []string{"v1;real"}) {
			t.Errorf("with Connection %q the service sees the mark %q", connection, marks)
		}
	}
}

func TestKeepOption(t *testing.T) {
	for _, c := range []struct{ lines, want []string }{
		{nil, nil},
		{[]string{"close"}, []string{"close"}},
		{[]string{"Upgrade,  keep-alive"}, []string{"Upgrade,  keep-alive"}},
		{[]string{"headgate-over"}, nil},
		{[]string{"Upgrade, headgate-over", "Headgate-Overt"}, []string{"Upgrade, Headgate-Overt"}},
	} {
		h := http.Header{}
		if c.lines != nil {
			h["Connection"] = c.lines
		}
		if keepOption(h); !reflect.DeepEqual(h["Connection"], c.want) {
			t.Errorf("%q: %q, want %q", c.lines, h["Connection"], c.want)
		}
	}
}
