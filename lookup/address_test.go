package lookup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestControlDial(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:80":                  "",
		"127.9.9.9:80":                  "",
		"10.1.2.3:80":                   "",
		"192.168.1.1:80":                "",
		"192.0.2.1:443":                 "",
		"[::1]:80":                      "",
		"[fd12::1]:80":                  "",
		"[2001:db8::1]:80":              "",
		"[::ffff:127.0.0.1]:80":         "",
		"[64:ff9b::192.0.2.1]:80":       "",
		"169.254.169.254:80":            "link-local",
		"169.254.0.1:80":                "link-local",
		"169.255.0.1:80":                "",
		"[::ffff:169.254.169.254]:80":   "link-local",
		"[::169.254.169.254]:80":        "link-local",
		"[64:ff9b::169.254.169.254]:80": "link-local",
		"[2002:a9fe:a9fe::1]:80":        "link-local",
		"[fe80::1]:80":                  "link-local",
		"[fe80::1%eth0]:80":             "link-local",
		"[febf:ffff::1]:80":             "link-local",
		"[fec0::1]:80":                  "",
		"0.0.0.0:80":                    "unspecified",
		"0.1.2.3:80":                    "unspecified",
		"[::]:80":                       "unspecified",
		"[::ffff:0.0.0.0]:80":           "unspecified",
		"[::%lo]:80":                    "unspecified",
		"224.0.0.1:80":                  "multicast or broadcast",
		"239.255.255.255:80":            "multicast or broadcast",
		"255.255.255.255:80":            "multicast or broadcast",
		"[ff02::1]:80":                  "multicast or broadcast",
		"[ff01::1]:80":                  "multicast or broadcast",
		"100.100.100.200:80":            "where a cloud serves credentials",
		"[::ffff:100.100.100.200]:80":   "where a cloud serves credentials",
		"[fd00:ec2::254]:80":            "where a cloud serves credentials",
		"[fd00:ec2::23]:80":             "where a cloud serves credentials",
		"[fd20:ce::254]:80":             "where a cloud serves credentials",
		"[fd20:ce::254%eth0]:80":        "where a cloud serves credentials",
		"[fd00:c1::a9fe:a9fe]:80":       "where a cloud serves credentials",
		"[fd00:42::42]:80":              "where a cloud serves credentials",
		"168.63.129.16:32526":           "where a cloud serves credentials",
		"[::ffff:168.63.129.16]:80":     "where a cloud serves credentials",
		"168.63.129.17:80":              "",
		"[fd00:ec2::253]:53":            "",
		"[64:ff9b:1::a9fe:a9fe]:80":     "link-local",
		"[64:ff9b:1::192.0.2.1]:80":     "",
		"localhost:80":                  "no address of the internet",
		"/run/docker.sock":              "no address of the internet",
		"":                              "no address of the internet",
	} {
		err := controlDial(t.Context(), "tcp", address, nil)
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, ErrAddress) || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
	if got := refusedKind(netip.Addr{}); got != "unspecified" {
		t.Errorf("no address: %q", got)
	}
}

// names is a name server that answers each question with the next of its addresses, and the last one for ever.
type names struct {
	mu      sync.Mutex
	answers [][4]byte
	asked   int
}

func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { n.serve(conn) })
	t.Cleanup(func() { _ = conn.Close(); wg.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *names) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer, err := n.answer(buf[:size]); err == nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

func (n *names) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

func (n *names) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil, fmt.Errorf("no question: %w", err)
	}
	q := m.Questions[0]
	answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	if q.Type == dnsmessage.TypeA {
		n.mu.Lock()
		a := n.answers[min(n.asked, len(n.answers)-1)]
		n.asked++
		n.mu.Unlock()
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: a},
		}}
	}
	return answer.Pack()
}

// TestRebinding: a name that led to a good address leads to a bad one a moment later.
func TestRebinding(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/", http.StatusFound) // to the same name, which has another address by then
			return
		}
		fmt.Fprint(w, "vip")
	}))
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	base := "http://tiers.example:" + port
	for _, bad := range [][4]byte{{169, 254, 169, 254}, {0, 0, 0, 0}, {224, 0, 0, 1}} {
		dns := &names{answers: [][4]byte{{127, 0, 0, 1}, bad, {127, 0, 0, 1}, bad}}
		h := newHTTP(HTTPConfig{}, dns.resolver(t))
		for i, path := range []string{"/", "/", "/redirect"} {
			value, found, err := h.Get(t.Context(), base+path, "")
			if i == 0 && (value != "vip" || !found || err != nil) {
				t.Errorf("first: %q, %v, %v", value, found, err)
			}
			if i > 0 && (found || !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), netip.AddrFrom4(bad).String())) {
				t.Errorf("%s: %q, %v, %v", path, value, found, err)
			}
		}
		h.Close()
		if n := dns.count(); n != 4 {
			t.Errorf("the name was asked for %d times, want 4", n)
		}
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ from, to, want string }{
		{"http://a.example/x/y?q=1", "z", "http://a.example/x/z"},
		{"http://a.example/x", "/z?q=2", "http://a.example/z?q=2"},
		{"http://a.example/x", "http://A.example:80/z", "http://A.example:80/z"},
		{"http://a.example/x", "//a.example/z", "http://a.example/z"},
		{"http://a.example/x", "https://a.example/x", "https://a.example/x"},
		{"http://u:p@a.example/x", "https://v:w@a.example/x", "https://u:p@a.example/x"},
		{"http://a.example:8080/x", "http://a.example:8080/z", "http://a.example:8080/z"},
		{"http://a.example:8080/x", "https://a.example:8080/z", ""},
		{"http://a.example:8080/x", "https://a.example/z", ""},
		{"http://a.example/x", "https://a.example:8443/z", ""},
		{"https://a.example/x", "http://a.example/x", ""},
		{"http://a.example/x", "http://a.example:6379/", ""},
		{"http://a.example/x", "http://b.example/", ""},
		{"http://a.example/x", "http://a.example.b.example/", ""},
		{"http://a.example/x", "http://a.example@b.example/", ""},
		{"http://a.example/x", `\\b.example\z`, "http://a.example/%5C%5Cb.example%5Cz"},
		{"http://a.example/x", "///b.example/", "http://a.example///b.example/"},
		{"http://a.example/x", "javascript:alert(1)", ""},
		{"http://a.example/x", "", ""},
		{"http://a.example/x", "/" + strings.Repeat("z", maxURL), ""},
	} {
		from, err := url.Parse(tc.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := redirect(from, tc.to)
		if err == nil && to.String() != tc.want || err != nil && tc.want != "" {
			t.Errorf("%s → %.60s: %v, %v, want %q", tc.from, tc.to, to, err, tc.want)
		}
	}
}
