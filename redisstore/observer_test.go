package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/redisstore"
)

// watcher is an Observer that counts.
type watcher struct {
	mu                sync.Mutex
	calls, takes, odd int
	codes             []string
	fresh             []string
}

func (w *watcher) Call(_, _ string, takes int, _ time.Duration, _ headgate.Code) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls, w.takes = w.calls+1, w.takes+takes
}

func (w *watcher) Failed(code headgate.Code, own bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes = append(w.codes, fmt.Sprint(code, " ", own))
}

func (w *watcher) UnknownStates(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.odd += n
}

func (w *watcher) NewKey(slot string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh = append(w.fresh, slot)
}

func (w *watcher) unknown() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.odd
}

func TestObserver(t *testing.T) {
	t.Parallel()
	w := &watcher{}
	s := open(t, redisstore.Config{Observer: w})
	limit := headgate.MustParseLimit("fixed_window 3/36500d")
	must(t, s, headgate.One("a", "k", limit), headgate.One("b", "k", limit))
	must(t, s, headgate.One("a", "k", limit))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := headgate.Take(ctx, s, headgate.One("a", "k", limit)); headgate.CodeOf(err) != headgate.CodeTimeout {
		t.Errorf("%v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls != 2 || w.takes != 2 || fmt.Sprint(w.fresh) != "[a b]" || fmt.Sprint(w.codes) != "[timeout true]" {
		t.Errorf("%+v", w)
	}
}
