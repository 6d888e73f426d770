package lookup_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headgate-io/headgate/lookup"
)

func TestHTTPRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") })
	var asked atomic.Int64
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if user, password, _ := r.BasicAuth(); user != "gate" || password != "secret" {
			t.Errorf("%s: asked as %s", r.URL, user)
		}
		if n, err := strconv.Atoi(r.URL.Path[1:]); err == nil && n > 0 {
			w.Header().Set("Location", "/"+strconv.Itoa(n-1)+"?q=2")
			w.WriteHeader([]int{301, 302, 303, 307, 308}[n%5])
			return
		}
		switch r.URL.Path {
		case "/away":
			w.Header().Set("Location", other.URL+"/?token=t0ken")
			w.WriteHeader(http.StatusFound)
		case "/spoof":
			w.Header().Set("Location", strings.Replace("http://a:b@HOST/0", "HOST", r.Host, 1))
			w.WriteHeader(http.StatusFound)
		case "/file":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		case "/nowhere":
			w.WriteHeader(http.StatusFound)
		case "/malformed":
			w.Header().Set("Location", "http://[::1?token=t0ken")
			w.WriteHeader(http.StatusFound)
		default:
			fmt.Fprint(w, "vip")
		}
	})
	base := strings.Replace(srv.URL, "http://", "http://gate:secret@", 1)
	for path, want := range map[string]struct {
		err   string
		asked int64
	}{
		"/1":         {asked: 2},
		"/3":         {asked: 4},
		"/4":         {"more than 3 redirects", 4},
		"/1000":      {"more than 3 redirects", 4},
		"/spoof":     {asked: 2},
		"/away":      {"a redirect to another host, port or scheme is not followed; write the final URL into the policy", 1},
		"/file":      {"a redirect to another host", 1},
		"/nowhere":   {"a redirect that does not say where to", 1},
		"/malformed": {"a redirect to something that is no URL", 1},
	} {
		asked.Store(0)
		value, found, err := newHTTP(t, lookup.HTTPConfig{}).Get(t.Context(), base+path, "")
		if want.err != "" {
			want.err = "lookup: GET " + srv.URL + ": " + want.err
		}
		if found != (want.err == "") || found && value != "vip" || !matches(err, want.err) || asked.Load() != want.asked {
			t.Errorf("%s: %q, %v, %v after %d requests", path, value, found, err, asked.Load())
		}
	}
}

func TestHTTPBadURLs(t *testing.T) {
	t.Parallel()
	h := newHTTP(t, lookup.HTTPConfig{})
	for text, want := range map[string]string{
		"":                                      "lookup: GET: the URL does not begin with http:// or https://",
		"ftp://192.0.2.1/":                      "lookup: GET: the URL does not begin with http:// or https://",
		"file:///etc/passwd":                    "lookup: GET: the URL does not begin with http:// or https://",
		"//192.0.2.1/":                          "lookup: GET: the URL does not begin with http:// or https://",
		"http:192.0.2.1":                        "lookup: GET: the URL has no host",
		"http://":                               "lookup: GET: the URL has no host",
		"http://:80/":                           "lookup: GET: the URL has no host",
		"http://user:s3cret@/":                  "lookup: GET: the URL has no host",
		"http://user:s3cret@192.0.2.1:x/":       "lookup: GET: the URL is malformed",
		"http://192.0.2.1/a b\n?q=s3cret":       "lookup: GET: the URL is malformed",
		"http://192.0.2.1/%zz?q=s3cret":         "lookup: GET: the URL is malformed",
		"http://h/" + strings.Repeat("x", 8192): "lookup: GET: the URL has 8201 bytes; 8192 are allowed",
	} {
		if _, found, err := h.Get(t.Context(), text, ""); found || !matches(err, want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.60q: %v, %v", text, found, err)
		}
	}
}

// TestHTTPErrorsKeepSecrets: no error has in it what stands before the @, in the path or behind the ?.
func TestHTTPErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	const user, path, query = "gate-user:s3cret", "/users/u-4711", "?token=t0ken"
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Accept") {
		case "application/json":
			fmt.Fprint(w, `{"tier":`+r.URL.String()) // no JSON
		default:
			w.Header().Set("Location", "http://other.example"+r.URL.String())
			w.WriteHeader(http.StatusFound)
		}
	})
	closed := silentListener(t)
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx         context.Context
		host, field string
	}{
		"redirect":    {t.Context(), srv.Listener.Addr().String(), ""},
		"JSON":        {t.Context(), srv.Listener.Addr().String(), "tier"},
		"no TLS":      {t.Context(), "[::ffff:" + strings.Replace(srv.Listener.Addr().String(), ":", "]:", 1), ""},
		"refused":     {t.Context(), "169.254.169.254", ""},
		"no name":     {t.Context(), "does-not-exist.invalid", ""},
		"canceled":    {expired, closed, ""},
		"bad port":    {t.Context(), "127.0.0.1:99999", ""},
		"nobody home": {t.Context(), "127.0.0.1:1", ""},
	} {
		scheme := "http://"
		if name == "no TLS" {
			scheme = "https://"
		}
		_, found, err := newHTTP(t, lookup.HTTPConfig{Timeout: 20 * time.Second}).Get(tc.ctx, scheme+user+"@"+tc.host+path+query, tc.field)
		if found || err == nil || !strings.Contains(err.Error(), "lookup: GET "+scheme+tc.host+": ") {
			t.Errorf("%s: %v, %v", name, found, err)
			continue
		}
		for _, secret := range []string{"gate-user", "s3cret", "u-4711", "t0ken"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error has %q in it: %v", name, secret, err)
			}
		}
	}
}

// TestHTTPGarbage: what is no HTTP is an error of bounded length.
func TestHTTPGarbage(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn)) // an answer before it would be of nothing
			_, _ = conn.Write([]byte("SSH-2.0 " + strings.Repeat("水", 2000) + "\r\n"))
			_ = conn.Close()
		}
	}()
	_, found, err := newHTTP(t, lookup.HTTPConfig{}).Get(t.Context(), "http://"+l.Addr().String(), "")
	if found || err == nil || len(err.Error()) > 400 || !utf8.ValidString(err.Error()) || !strings.Contains(err.Error(), "malformed HTTP") {
		t.Errorf("%v, %v", found, err)
	}
}
