package redisstock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

func containsAll(err error, text string) bool {
	return err != nil && strings.Contains(err.Error(), text)
}

// callsOf returns how often a server has run a command, 0 for never.
func callsOf(t *testing.T, srv *testservers.RedisServer, command string) int {
	t.Helper()
	info, err := srv.Info("commandstats")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(strings.TrimPrefix(info["cmdstat_"+command], "calls="), ",")
	n, _ := strconv.Atoi(text)
	return n
}

// TestBatchSeesItself: asks of one call see what those before them took, of the stock, of a rid and of a user.
func TestBatchSeesItself(t *testing.T) {
	srv := testservers.Redis(t)
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}, MaxInFlight: 1, Timeout: time.Minute}), 8, 3)
	jammed := k.jam(srv)
	onlyKnown := k.ask("r1", "u1", 1)
	onlyKnown.OnlyKnown = true
	unknown := k.ask("r9", "u9", 1)
	unknown.OnlyKnown = true
	steps := []struct {
		ask  *flashsale.Ask
		want string // accepted, known, or a code, then available and seq
	}{
		{k.ask("r1", "u1", 1), "accepted 6 3"},
		{k.ask("r1", "u1", 1), "known 6 3"},
		{k.ask("r1", "u1", 2), "conflict 6 3"},
		{onlyKnown, "known 6 3"},
		{unknown, "token_expired 6 3"},
		{k.ask("r2", "u1", 2), "accepted 4 4"},
		{k.ask("r3", "u1", 1), "purchase_limit 4 4 r1,r2"},
		{k.ask("r4", "u2", 4), "purchase_limit 4 4"},
		{k.ask("r4", "u2", 3), "accepted 1 5"},
		{k.ask("r5", "u3", 2), "sold_out 1 5"},
		{k.ask("r5", "u3", 1), "accepted 0 6"},
		{k.ask("r6", "u4", 1), "sold_out 0 6"},
		{k.ask("r2", "u1", 2), "known 0 6"},
	}
	asks := make([]*flashsale.Ask, len(steps))
	for i := range steps {
		asks[i] = steps[i].ask
	}
	begun := k.queue(asks...)
	k.check(srv.Resume())
	<-jammed.done
	if jammed.err != nil || !jammed.answer.Accepted {
		t.Fatalf("the first: %+v", jammed)
	}
	for i, l := range begun {
		<-l.done
		if got := outcome(l); got != steps[i].want {
			t.Errorf("ask %d, %s for %s: got %q, want %q", i, asks[i].RID, asks[i].User, got, steps[i].want)
		}
	}
	v := k.view()
	if v.Available != 0 || v.Held != 8 || v.Queue.Depth != 5 || v.Queue.Pending != 5 {
		t.Errorf("the figures: %+v", v)
	}
	jobs, err := k.stock.Pull(t.Context(), k.key, 1, "c", 10, time.Hour)
	k.check(err)
	var order []string
	for _, j := range jobs {
		order = append(order, fmt.Sprint(j.RID, " ", j.User, " ", j.Quantity, " ", j.Seq))
	}
	if want := []string{"jam u-jam 1 2", "r1 u1 1 3", "r2 u1 2 4", "r4 u2 3 5", "r5 u3 1 6"}; !slices.Equal(order, want) {
		t.Errorf("the jobs: %q, want %q", order, want)
	}
}

func outcome(l *later) string {
	a := l.answer
	word := string(a.Code)
	switch {
	case l.err != nil:
		return l.err.Error()
	case a.Accepted:
		word = "accepted"
	case a.Known:
		word = "known"
	}
	text := fmt.Sprint(word, " ", a.Available, " ", a.Seq)
	if len(a.Holds) > 0 {
		text += " " + strings.Join(a.Holds, ",")
	}
	return text
}

// TestBatches: what waits goes in calls of at most MaxBatch, and each gets its own answer.
func TestBatches(t *testing.T) {
	srv := testservers.Redis(t)
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}, MaxInFlight: 1, MaxBatch: 32, Timeout: time.Minute}), 1000, 1)
	before := callsOf(t, srv, "hmget")
	jammed := k.jam(srv)
	var begun []*later
	for i := range 100 {
		begun = append(begun, k.begin(t.Context(), k.ask(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)))
	}
	k.awaitWaiting(100, 1)
	k.check(srv.Resume())
	for i, l := range append(begun, jammed) {
		<-l.done
		if l.err != nil || !l.answer.Accepted || (l != jammed && l.answer.Entry.RID != fmt.Sprint("r", i)) {
			t.Fatalf("ask %d: %+v", i, l)
		}
	}
	if got := callsOf(t, srv, "hmget") - before; got != 3*(1+4) { // of the stock, of rids, of users: for one, and for 32, 32, 32 and 4
		t.Errorf("HMGET was called %d times, want 15", got)
	}
	if q, f := k.stock.Waiting(); q != 0 || f > 1 {
		t.Errorf("%d wait and %d are on the wire when all have their answers", q, f)
	}
}

// TestEpochsGoApart: callers who know another epoch are not in one call with others.
func TestEpochsGoApart(t *testing.T) {
	srv := testservers.Redis(t)
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}, MaxInFlight: 1, Timeout: time.Minute}), 10, 1)
	jammed := k.jam(srv)
	other := make(chan error, 1)
	go func() {
		_, err := k.stock.Reserve(context.Background(), k.key, 2, k.ask("r1", "u1", 1))
		other <- err
	}()
	k.awaitWaiting(0, 2)
	k.check(srv.Resume())
	if err := <-other; flashsale.CodeOf(err) != flashsale.CodeStaleEpoch {
		t.Errorf("in epoch 2: %v", err)
	}
	if <-jammed.done; jammed.err != nil || !jammed.answer.Accepted {
		t.Errorf("in epoch 1: %+v", jammed)
	}
}

// TestLeaving: a caller leaves when its context or the stock's time ends, and the error tells whether its ask may have run.
func TestLeaving(t *testing.T) {
	srv := testservers.Redis(t)
	s := open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Namespace: "ns", MaxInFlight: 1})
	k := sell(t, s, 10, 1)
	hasty := &sku{T: t, key: k.key, stock: open(t, redisstock.Config{Addrs: []string{srv.Addr()}, Namespace: "ns", MaxInFlight: 1, Timeout: 300 * time.Millisecond})}
	k.check(srv.Pause())
	t.Cleanup(func() { _ = srv.Resume() })
	ctx, leave := context.WithCancel(t.Context())
	sent := k.begin(ctx, k.ask("r1", "u1", 1))
	k.awaitWaiting(0, 1)
	waits := k.begin(ctx, k.ask("r2", "u2", 1))
	k.awaitWaiting(1, 1)
	stays := []*later{hasty.begin(t.Context(), k.ask("r3", "u3", 1)), hasty.begin(t.Context(), k.ask("r4", "u4", 1))} // one is sent, one waits
	leave()
	<-sent.done
	<-waits.done
	failsWith(t, sent.err, flashsale.CodeUnavailable, "it may have run")
	failsWith(t, waits.err, flashsale.CodeUnavailable, "nothing was changed")
	for _, err := range []error{sent.err, waits.err} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it is not said that the caller left: %v", err)
		}
	}
	for _, l := range stays {
		<-l.done
		failsWith(t, l.err, flashsale.CodeUnavailable, "")
		if errors.Is(l.err, context.DeadlineExceeded) || errors.Is(l.err, context.Canceled) {
			t.Errorf("a caller who did not leave is told that it did: %v", l.err)
		}
	}
	k.check(srv.Resume())
	for i := range 4 { // whatever ran: the repeats run once
		rid, user := fmt.Sprint("r", i+1), fmt.Sprint("u", i+1)
		await(t, func() error {
			a, err := k.reserve(t.Context(), rid, user, 1)
			if err == nil && !a.Accepted && !a.Known {
				t.Fatalf("%s: %+v", rid, a)
			}
			return err
		})
	}
	if v := k.view(); v.Available != 6 || v.Held != 4 || v.Queue.Depth != 4 {
		t.Errorf("the figures: %+v", v)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := k.reserve(gone, "r9", "u9", 1)
	failsWith(t, err, flashsale.CodeUnavailable, "nothing was changed")
	_, err = s.Find(gone, k.key, 1, nil)
	failsWith(t, err, flashsale.CodeUnavailable, "nothing was changed")
}

// TestFullQueue: a queue at its bound refuses, and works on.
func TestFullQueue(t *testing.T) {
	srv := testservers.Redis(t)
	k := sell(t, open(t, redisstock.Config{Addrs: []string{srv.Addr()}, MaxInFlight: 1, MaxQueue: 2, Timeout: time.Minute}), 10, 1)
	jammed := k.jam(srv)
	begun := append(k.queue(k.ask("r1", "u1", 1), k.ask("r2", "u2", 1)), jammed)
	_, err := k.reserve(t.Context(), "r3", "u3", 1)
	failsWith(t, err, flashsale.CodeBusy, "nothing was changed")
	k.check(srv.Resume())
	for _, l := range begun {
		if <-l.done; l.err != nil || !l.answer.Accepted {
			t.Errorf("%+v", l)
		}
	}
	k.accept("r3", "u3", 1)
}

// TestCloseWhileWaiting: nobody waits for longer than the stock lives.
func TestCloseWhileWaiting(t *testing.T) {
	srv := testservers.Redis(t)
	s := open(t, redisstock.Config{Addrs: []string{srv.Addr()}, MaxInFlight: 1, Timeout: time.Minute})
	k := sell(t, s, 10, 1)
	begun := append([]*later{k.jam(srv)}, k.queue(k.ask("r1", "u1", 1), k.ask("r2", "u2", 1))...)
	other := make(chan error, 1)
	go func() {
		_, err := s.View(context.Background(), k.key)
		other <- err
	}()
	k.check(s.Close())
	for i, l := range begun {
		<-l.done
		want := "the stock has been closed"
		if i == 0 {
			want = "it may have run"
		}
		failsWith(t, l.err, flashsale.CodeClosed, want)
	}
	failsWith(t, <-other, flashsale.CodeClosed, "closed")
	k.check(s.Close())
	_, err := k.reserve(t.Context(), "r3", "u3", 1)
	failsWith(t, err, flashsale.CodeClosed, "closed")
	_, err = s.Due(t.Context(), k.key, 1, 1)
	failsWith(t, err, flashsale.CodeClosed, "closed")
}
