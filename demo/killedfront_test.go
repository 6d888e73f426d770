package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headgate-io/headgate/internal/testservers"
)

// front is what stands before the gate: the demo's door, and behind it a proxy, as of a shop, which stays when the gate dies. It kills
// what is to be killed at the requests that are meant, and is a witness of the keys that purchases have.
type front struct {
	t       *testing.T
	address string
	proxy   *httputil.ReverseProxy

	mu     sync.Mutex
	to     *url.URL
	fault  *fault
	seen   int  // requests of the fault's kind
	struck bool // the fault has come
	failed int  // calls since then that have failed
	lost   int
	sent   map[string]map[string]int // by user, how often each token was sent
}

// request is a kind of request.
type request int

const (
	other request = iota
	reserving
	paying
	messaging // by the bank
)

// fault is something that dies at the nth request of a kind, counted from when the one before was over, before it gets anywhere or, if
// answered, with its answer. A request whose answer is lost is one that did what it was for.
type fault struct {
	name     string
	at       request
	nth      int
	answered bool
	kill     func()
	heal     func() error
}

// feltBy is how many calls must have failed before a fault is healed.
const feltBy = 3

func newFront(t *testing.T, shop *Shop) *front {
	t.Helper()
	f := &front{t: t, sent: make(map[string]map[string]int)}
	transport := &http.Transport{MaxIdleConnsPerHost: guests}
	t.Cleanup(transport.CloseIdleConnections)
	f.proxy = &httputil.ReverseProxy{
		Rewrite: f.rewrite, ModifyResponse: f.answered, ErrorHandler: f.unanswered, Transport: transport,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	f.address = serveOn(t, newDoor(f, shop, newFlights()))
	return f
}

func (f *front) leadTo(address string) { f.to = &url.URL{Scheme: "http", Host: address} }

// home is the shop as a guest gets to it.
func (f *front) home(n int) string {
	_, port, _ := strings.Cut(f.address, ":")
	return fmt.Sprintf("http://%s%d.localhost:%s/?lang=en", guestHost, n, port)
}

const guestHost = "guest"

func (f *front) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(f.to)
	r.Out.Host = r.In.Host
	// Each comes from an address of their own.
	name, _, _ := strings.Cut(r.In.Host, ".")
	if n, err := strconv.Atoi(strings.TrimPrefix(name, guestHost)); err == nil {
		r.Out.Header.Set("X-Forwarded-For", addressIn(shopperNet, n))
	}
}

// ServeHTTP implements [http.Handler], for whom the door has let in.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := kindOfRequest(r)
	if kind == reserving {
		f.witness(r)
	}
	f.strike(kind, false)
	f.proxy.ServeHTTP(w, r)
}

func kindOfRequest(r *http.Request) request {
	switch {
	case r.Method != http.MethodPost:
	case strings.HasSuffix(r.URL.Path, "/reservations"):
		return reserving
	case strings.HasSuffix(r.URL.Path, "/pay"):
		return paying
	case strings.HasSuffix(r.URL.Path, "/webhook"):
		return messaging
	}
	return other
}

// strike kills what is to be killed, if it is time, and reports whether it did.
func (f *front) strike(kind request, answered bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == nil || f.struck || kind != f.fault.at || answered != f.fault.answered {
		return false
	}
	if f.seen++; f.seen < f.fault.nth {
		return false
	}
	f.fault.kill()
	f.struck = true
	return true
}

var errLost = errors.New("the answer is lost with who gave it")

func (f *front) answered(r *http.Response) error {
	if r.StatusCode/100 == 2 && f.strike(kindOfRequest(r.Request), true) {
		return errLost
	}
	if r.StatusCode >= http.StatusInternalServerError {
		f.feel()
	}
	return nil
}

// unanswered is what comes of a request to a gate that is not there: one half gets an answer of the proxy that no script of ours has made,
// the other half none.
func (f *front) unanswered(w http.ResponseWriter, _ *http.Request, _ error) {
	if f.feel()%2 == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, "<html><body>502 Bad Gateway</body></html>") // a client that has gone away needs none
}

func (f *front) feel() (lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.struck {
		f.failed++
	}
	f.lost++
	return f.lost
}

// suffer lets a fault come, and waits until shoppers have felt it.
func (f *front) suffer(ctx context.Context, next *fault) error {
	f.mu.Lock()
	f.fault, f.seen, f.struck, f.failed = next, 0, false, 0
	f.mu.Unlock()
	return testservers.Poll(ctx, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.failed < feltBy {
			return fmt.Errorf("it was struck: %t, at request %d of %d; %d calls have failed, and %d are to", f.struck, f.seen, next.nth, f.failed, feltBy)
		}
		return nil
	})
}

// healed ends a fault.
func (f *front) healed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.struck = nil, false
}

// witness notes the token of a reserve call.
func (f *front) witness(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var doc struct{ Token string }
	if err := json.Unmarshal(body, &doc); err != nil {
		f.t.Errorf("a reserve call has the body %q", body)
	}
	user := r.Header.Get(userHeader)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent[user] == nil {
		f.sent[user] = make(map[string]int)
	}
	f.sent[user][doc.Token]++
}

// tokens is how many tokens a user has sent.
func (f *front) tokens(user string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sent[user])
}

// mostSent is how often the token was sent that was sent most often.
func (f *front) mostSent() (most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, tokens := range f.sent {
		for _, n := range tokens {
			most = max(most, n)
		}
	}
	return most
}
