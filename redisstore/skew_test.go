package redisstore

import (
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestClockSkew: where this machine's clock is days off, calendar windows are asked for again, around the clock of Redis.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t)
	s, err := New(t.Context(), Config{Addrs: []string{srv.Addr()}, Timeout: time.Minute, ConnectTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.wall = func() time.Time { return time.Now().Add(-80 * time.Hour) }
	day := headgate.One("d", "k", headgate.MustParseLimit("fixed_window 2/day zone=Asia/Shanghai"))
	day.Cost = 2
	var d headgate.Decision
	if err := s.Take(t.Context(), []headgate.Charge{day}, &d); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	start, end := s.zones.Window(day.Limit.(headgate.FixedWindow), time.Now().UnixMicro())
	if d.Outcomes[0].Receipt.Mark != start || d.Outcomes[0].ResetAfter > time.Duration(end-start)*time.Microsecond {
		t.Errorf("%+v is not of the window that began at %d", d.Outcomes[0], start)
	}
	if err := s.Refund(t.Context(), []headgate.Charge{day}, &d); err != nil || d.Outcomes[0].Receipt.Charged != 0 {
		t.Errorf("refund: %+v, %v", d, err)
	}
	if err := s.Take(t.Context(), []headgate.Charge{day}, &d); err != nil || !d.Allowed {
		t.Errorf("after the refund: %+v, %v", d, err)
	}
	a := answerer{charges: []headgate.Charge{day}}
	o, wall, failed := s.begin(t.Context(), s.scripts.take)
	if failed != nil {
		t.Fatal(failed)
	}
	o.load(s.names, a.charges)
	if failed := s.run(t.Context(), s.lane("k"), o, wall); failed != nil {
		t.Fatal(failed)
	}
	// The window is stored by now, so none has to be picked: there is an answer. On another key there is none.
	if failed := a.read(o.reply, o.at); failed != nil {
		t.Error(failed)
	}
	a.charges[0].Key, a.parts = "other", nil
	o, wall, _ = s.begin(t.Context(), s.scripts.take)
	o.load(s.names, a.charges)
	if failed := s.run(t.Context(), s.lane("other"), o, wall); failed != nil {
		t.Fatal(failed)
	}
	if failed := a.read(o.reply, o.at); failed == nil || failed.Code != headgate.CodeClockSkew {
		t.Errorf("windows of another day: %v", failed)
	}
}
