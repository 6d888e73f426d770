package page_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// between: an answer that breaks off, or that somebody between has made, is none. It ends no purchase, and is no reason to hurry.
func between(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5})
	var calls, refused, again atomic.Int64
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/reservations") {
			return false
		}
		switch calls.Add(1) {
		case 1:
			w.Header().Set("Content-Length", "500")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"rid":`)
		case 2:
			http.Error(w, "nobody is here", http.StatusNotFound)
		case 3:
			w.Header().Set("Retry-After", time.Now().UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
			refused.Store(time.Now().UnixNano())
		default:
			again.CompareAndSwap(0, time.Now().UnixNano())
			return false
		}
		return true
	})
	p := s.visit(ctx, "en")
	p.state("open")
	p.click("Buy", 1)
	p.state("reserved")
	if n := s.times("POST /token"); n != 1 {
		t.Errorf("%d tokens were asked for: the purchase had more than one key", n)
	}
	if gap := time.Duration(again.Load() - refused.Load()); gap < 4*time.Second {
		t.Errorf("after three calls in vain the next one came after %s; 4 s are the least", gap)
	}
	var looks atomic.Int64
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		events := strings.HasSuffix(r.URL.Path, "/events")
		if !events && (!strings.Contains(r.URL.Path, "/reservations/") || looks.Add(1) > 2) {
			return false
		}
		http.Error(w, "nobody is here", http.StatusNotFound)
		return true
	})
	p.do(chromedp.Reload())
	p.state("reserved")
	if n := looks.Load(); n < 3 {
		t.Errorf("it was asked for %d times, and answered at the third", n)
	}
}

// stalled: a server that has waited in vain for the rest of the body has reserved nothing and refused nothing, so the same is sent again.
func stalled(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5})
	var cut atomic.Bool
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/reservations") || cut.Swap(true) {
			return false
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusRequestTimeout)
		_, _ = io.WriteString(w, `{"status":408,"code":"body_timeout","detail":"The request did not arrive in time."}`)
		return true
	})
	p := s.visit(ctx, "en")
	p.state("open")
	p.click("Buy", 1)
	p.state("reserved")
	if n := s.times("POST /token"); n != 1 || !cut.Load() {
		t.Errorf("%d tokens were asked for, 1 was needed; a body stalled: %v", n, cut.Load())
	}
}

// withoutEvents: where event streams do not come through, results are asked for.
func withoutEvents(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5, slow: true})
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/events") {
			http.Error(w, "no", http.StatusBadGateway)
			return true
		}
		return false
	})
	p := s.visit(ctx, "en")
	p.state("open")
	p.click("Buy", 1)
	p.state("pending")
	s.decide()
	p.state("reserved")
	if s.times("GET /reservations/…") == 0 {
		t.Error("nothing was asked for")
	}
}

// eventsAgain: where event streams come through again, the page goes back to them.
func eventsAgain(t *testing.T, ctx context.Context) {
	s := openShop(t, plan{total: 5, slow: true})
	var first atomic.Bool
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/events") || first.Swap(true) {
			return false
		}
		http.Error(w, "no", http.StatusBadGateway)
		return true
	})
	p := s.visit(ctx, "en")
	p.state("open")
	p.click("Buy", 1)
	p.state("pending")
	const stream, look = "GET /reservations/…/events", "GET /reservations/…"
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for s.times(stream) < 2 {
		if wait.Err() != nil {
			t.Fatalf("the stream was asked for once, and the result %d times", s.times(look))
		}
		p.do(chromedp.Sleep(50 * time.Millisecond))
	}
	looks := s.times(look)
	s.decide()
	p.state("reserved")
	if n := s.times(look); n != looks {
		t.Errorf("beside the stream the result was asked for %d times more", n-looks)
	}
}
