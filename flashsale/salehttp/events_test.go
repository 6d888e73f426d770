package salehttp

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/memstore"
)

// event is a server-sent event, or a comment: one without a name.
type event struct {
	id, name string
	retry    string
	data     resultBody
}

// stream reads events.
type stream struct {
	testing.TB
	body io.ReadCloser
	read *bufio.Reader
}

// next returns the next event, false at the end.
func (s *stream) next() (e event, ok bool) {
	s.Helper()
	for lines := 0; ; lines++ {
		line, err := s.read.ReadString('\n')
		if errors.Is(err, io.EOF) && lines == 0 {
			return e, false
		}
		if err != nil {
			s.Fatalf("the stream breaks off: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "":
			return e, true
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "retry":
			e.retry = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				s.Fatalf("%s: %v", line, err)
			}
		case ":":
		default:
			s.Fatalf("a line %q", line)
		}
	}
}

// is reads the next event, which must be this one.
func (s *stream) is(name, id string) event {
	s.Helper()
	e, ok := s.next()
	if !ok || e.name != name || e.id != id || e.data.State != name {
		s.Fatalf("the event is %+v, %v; want %s %s", e, ok, name, id)
	}
	return e
}

func (s *stream) ends() {
	s.Helper()
	if e, ok := s.next(); ok {
		s.Fatalf("it goes on with %+v", e)
	}
}

// listen opens a stream at a server.
func (s *shop) listen(server *httptest.Server, k ask) (*http.Response, *stream) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, server.URL+k.path, nil)
	s.Must(err)
	r.Header.Set("X-User", k.user)
	for name, value := range k.header {
		r.Header.Set(name, value)
	}
	w, err := server.Client().Do(r)
	s.Must(err)
	s.Cleanup(func() { _ = w.Body.Close() })
	return w, &stream{TB: s.TB, body: w.Body, read: bufio.NewReader(w.Body)}
}

func (s *shop) serve() *httptest.Server {
	server := httptest.NewServer(s.h)
	s.Cleanup(func() {
		_ = s.h.Close()
		server.Close()
	})
	return server
}

// TestEventsFromPendingToPaid is a stream from its beginning to its end, and the way back of a client that has seen the end.
func TestEventsFromPendingToPaid(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 5})
	server := s.serve()
	path := s.pending("u")
	w, events := s.listen(server, ask{path: path + "/events", user: "u"})
	if w.StatusCode != 200 || w.Header.Get("Content-Type") != "text/event-stream" || w.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", w.StatusCode, w.Header)
	}
	if e, _ := events.next(); e.retry != "1000" {
		t.Errorf("at first it says when to come back: %+v", e)
	}
	if e := events.is("pending", "0"); e.data.Until == "" || e.data.Now == "" {
		t.Errorf("pending: %+v", e.data)
	}
	s.consume()
	if e := events.is("reserved", "1"); e.data.Until != "2026-11-11T12:15:00.000Z" || *e.data.Amount != price {
		t.Errorf("reserved: %+v", e.data)
	}
	intent := flashsale.IntentKey(s.post(path+"/pay", "u", "").is(200, "").text("rid"), 1)
	events.is("confirming", "2")
	s.Must(s.Bank.Pay(intent, flashsale.PayCaptured))
	s.webhook("e1", intent, "captured", price, "EUR").is(204, "")
	if e := events.is("confirmed", "3"); e.data.OrderID == "" || e.data.Until != "" {
		t.Errorf("confirmed: %+v", e.data)
	}
	events.ends()

	if w, _ := s.listen(server, ask{path: path + "/events", user: "u", header: map[string]string{"Last-Event-ID": "3"}}); w.StatusCode != 204 {
		t.Errorf("who has seen the end is answered %d, and would come back for ever", w.StatusCode)
	}
	_, events = s.listen(server, ask{path: path + "/events", user: "u", header: map[string]string{"Last-Event-ID": "1"}})
	_, _ = events.next()
	events.is("confirmed", "3")
	events.ends()
}

// TestEventsGoOnFromTheLast: what was seen is not sent again.
func TestEventsGoOnFromTheLast(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 5})
	server := s.serve()
	path := s.reserved("u")
	_, events := s.listen(server, ask{path: path + "/events", user: "u", header: map[string]string{"Last-Event-ID": "1"}})
	_, _ = events.next()
	s.post(path+"/cancel", "u", "").is(200, "").has("reason", "by_owner")
	events.is("cancelled", "2")
	events.ends()
}

// TestTickets: one is good for one stream of one reservation, once, for 30 seconds.
func TestTickets(t *testing.T) {
	t.Parallel()
	for where, fleet := range map[string]bool{"in the process": false, "over the fleet": true} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			limiter := memstore.New(memstore.Config{})
			t.Cleanup(func() { _ = limiter.Close() })
			s := openShop(t, plan{total: 5, limit: 5, config: func(c *Config) {
				if fleet {
					c.Limiter = limiter
				}
			}})
			server := s.serve()
			path, other := s.reserved("u"), s.reserved("u")
			ticket := func() string {
				t.Helper()
				return s.post(path+"/ticket", "u", "").is(201, "").has("expires_at", stamp(s.Clock.Now().Add(30*time.Second))).text("ticket")
			}
			first := ticket()
			w, events := s.listen(server, ask{path: path + "/events?ticket=" + first})
			if w.StatusCode != 200 {
				t.Fatalf("a good ticket is answered %d", w.StatusCode)
			}
			_, _ = events.next()
			events.is("reserved", "1")
			s.get(path+"/events?ticket="+first, "u").is(403, "invalid_ticket")

			second := ticket()
			if second == first {
				t.Fatal("two tickets are the same")
			}
			for _, bad := range []string{"", "x", second + "A", second[:len(second)-2], "k2" + second[2:], second + "&ticket=" + second, "%zz", s.token("v")} {
				s.get(path+"/events?ticket="+bad, "").is(403, "invalid_ticket")
			}
			s.get(other+"/events?ticket="+second, "u").is(403, "invalid_ticket")
			s.Clock.Pass(30 * time.Second)
			s.get(path+"/events?ticket="+second, "").is(403, "invalid_ticket")
			s.post(path+"/ticket", "v", "").is(404, "not_found")
			s.post(path+"/cancel", "u", "").is(200, "")
			events.is("cancelled", "2")
		})
	}
}

// TestTicketsHaveABound: who gets more than a process remembers is refused, and what was used stays used as long as it could be used.
func TestTicketsHaveABound(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	tickets := &tickets{now: func() time.Time { return now }}
	if ok, err := tickets.spend(t.Context(), "first"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for n := range maxSpent {
		ok, err := tickets.spend(t.Context(), string(rune('a'+n%26))+time.Duration(n).String())
		if want := n < maxSpent-1; ok != want || (err == nil) != want {
			t.Fatalf("ticket %d: %v, %v", n, ok, err)
		}
	}
	for range 3 {
		now = now.Add(ticketLife)
		if ok, err := tickets.spend(t.Context(), "first"); ok || err != nil {
			t.Errorf("it is used again: %v, %v", ok, err)
		}
	}
	now = now.Add(spentFor)
	if ok, err := tickets.spend(t.Context(), "another"); !ok || err != nil {
		t.Errorf("there is no room again: %v, %v", ok, err)
	}
	if now = now.Add(spentFor); !func() bool { ok, _ := tickets.spend(t.Context(), "more"); return ok }() || len(tickets.before) != 1 {
		t.Errorf("%d are kept", len(tickets.before))
	}
}

// TestTicketsNeedTheStore: while nobody can say whether one was used, it is not good.
func TestTicketsNeedTheStore(t *testing.T) {
	t.Parallel()
	limiter := memstore.New(memstore.Config{})
	s := openShop(t, plan{total: 5, config: func(c *Config) { c.Limiter = limiter }})
	path := s.reserved("u")
	ticket := s.post(path+"/ticket", "u", "").text("ticket")
	s.Must(limiter.Close())
	s.get(path+"/events?ticket="+ticket, "").is(503, "unavailable")
}

// TestFiftyStreams: a shopper who opens 50 gets 4; the others are refused at once, and nobody else notices.
func TestFiftyStreams(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 20, config: func(c *Config) { c.MaxStreams = 6 }})
	server := s.serve()
	path := s.reserved("u")
	var open []*http.Response
	refused := 0
	for range 50 {
		w, events := s.listen(server, ask{path: path + "/events", user: "u"})
		switch w.StatusCode {
		case 200:
			open = append(open, w)
			_, _ = events.next()
			events.is("reserved", "1")
		case 429:
			refused++
			if w.Header.Get("Retry-After") != "5" || w.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%v", w.Header)
			}
		default:
			t.Errorf("%d", w.StatusCode)
		}
	}
	if len(open) != 4 || refused != 46 {
		t.Errorf("%d open, %d refused", len(open), refused)
	}
	others := []string{s.reserved("v"), s.reserved("w"), s.reserved("x")}
	for i, user := range []string{"v", "w", "x"} {
		want := 200
		if i == 2 {
			want = 429 // the bound of all
		}
		if w, _ := s.listen(server, ask{path: others[i] + "/events", user: user}); w.StatusCode != want {
			t.Errorf("%s is answered %d, want %d", user, w.StatusCode, want)
		}
	}
	s.Must(open[0].Body.Close())
	eventually(t, func() bool {
		w, _ := s.listen(server, ask{path: path + "/events", user: "u"})
		return w.StatusCode == 200
	})
}

// TestCloseEndsStreams: at once, and without an error at the client, who comes back elsewhere.
func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 5})
	server := s.serve()
	path := s.reserved("u")
	_, events := s.listen(server, ask{path: path + "/events", user: "u"})
	_, _ = events.next()
	events.is("reserved", "1")
	s.Must(s.h.Close())
	s.Must(s.h.Close())
	events.ends()
	s.get(path+"/events", "u").is(503, "closed")
	s.get(path, "u").is(200, "")
	eventually(t, func() bool { return s.h.streams.open() == 0 })
}

// open counts places that are taken, and users who have one.
func (s *streams) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.all, len(s.of))
}
