package sqlorders

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func (s *shop) unsent(lane flashsale.Lane, age time.Duration, limit int) []string {
	s.Helper()
	events, err := s.o.Unsent(s.Context(), lane, age, 0, limit)
	noError(s.T, "Unsent", err)
	var ids []string
	for i := range events {
		ids = append(ids, events[i].MessageID())
	}
	return ids
}

func (s *shop) wantUnsent(lane flashsale.Lane, want ...string) {
	s.Helper()
	if got := s.unsent(lane, 0, 100); !slices.Equal(got, want) {
		s.Errorf("unsent in lane %s: got %v, want %v", lane, got, want)
	}
}

func TestUnsentAndSent(t *testing.T) {
	eachShop(t, func(s *shop) {
		a := s.decide(job("a", "a", 1), job("b", "b", 1))
		s.pass(time.Second)
		c, err := s.o.Cancel(s.Context(), "a", "", "")
		noError(t, "Cancel", err)
		s.wantUnsent(flashsale.LaneStock, "a:1", "b:1", "a:2")
		if got := s.unsent(flashsale.LaneStock, time.Second, 100); !slices.Equal(got, []string{"a:1", "b:1"}) {
			t.Errorf("of 1 s: %v", got)
		}
		if got := s.unsent(flashsale.LaneStock, 0, 2); !slices.Equal(got, []string{"a:1", "b:1"}) {
			t.Errorf("2 of them: %v", got)
		}
		if got := s.unsent(flashsale.LaneRelay, 0, 0); len(got) != 0 {
			t.Errorf("none of them: %v", got)
		}
		for range 2 {
			noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneStock, 1, []int64{a[0].Outbox, c.Outbox, 1 << 40}))
		}
		s.wantUnsent(flashsale.LaneStock, "b:1")
		s.wantUnsent(flashsale.LaneRelay, "a:1", "b:1", "a:2")
		if n, err := s.o.UnsentCount(s.Context(), testKey); err != nil || n != 1 {
			t.Errorf("unsent: %d, %v", n, err)
		}
		if n, err := s.o.UnsentCount(s.Context(), otherKey); err != nil || n != 0 {
			t.Errorf("unsent of another: %d, %v", n, err)
		}
		noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneRelay, 0, []int64{a[1].Outbox}))
		s.wantUnsent(flashsale.LaneRelay, "a:1", "a:2")
		noError(t, "Sent of nothing", s.o.Sent(s.Context(), flashsale.LaneRelay, 0, nil))
		wantCode(t, "another lane", s.o.Sent(s.Context(), "x", 0, []int64{1}), flashsale.CodeInvalidArgument)
		_, err = s.o.Unsent(s.Context(), "stock_sent = 0 --", 0, 0, 1)
		wantCode(t, "another lane", err, flashsale.CodeInvalidArgument)
	})
}

// wantUnsentOf pages through what LaneStock has not delivered of a key.
func (s *shop) wantUnsentOf(key flashsale.Key, want ...string) {
	s.Helper()
	var ids []string
	for after := int64(0); ; {
		events, err := s.o.UnsentOf(s.Context(), key, after, 2)
		noError(s.T, "UnsentOf", err)
		if len(events) == 0 {
			break
		}
		for i := range events {
			ids, after = append(ids, events[i].MessageID()), events[i].ID
		}
	}
	if !slices.Equal(ids, want) {
		s.Errorf("unsent of %s: got %v, want %v", key, ids, want)
	}
}

// TestUnsentInPages: rows that nobody delivers hide none of those that come after them.
func TestUnsentInPages(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.decide(job("a", "a", 1), job("b", "b", 1), job("c", "c", 1))
		for _, lane := range []flashsale.Lane{flashsale.LaneStock, flashsale.LaneRelay} {
			var got []string
			for after := int64(0); ; {
				events, err := s.o.Unsent(s.Context(), lane, 0, after, 1)
				noError(t, "Unsent", err)
				if len(events) == 0 {
					break
				}
				got, after = append(got, events[0].MessageID()), events[0].ID
			}
			if want := []string{"a:1", "b:1", "c:1"}; !slices.Equal(got, want) {
				t.Errorf("lane %s: %v, want %v", lane, got, want)
			}
		}
	})
}

// TestSentNeedsTheEpoch: a row counts in the epoch that it went to, and not while the keys are rebuilt.
func TestSentNeedsTheEpoch(t *testing.T) {
	eachShop(t, func(s *shop) {
		ids := []int64{s.decide(job("a", "a", 1))[0].Outbox}
		mustExec(t, s.o, "UPDATE sale_sku SET epoch = 2, rebuilding = 1 WHERE sku = 'sku'")
		for _, epoch := range []int64{1, 2, 3} {
			noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneStock, epoch, ids))
			s.wantUnsentOf(testKey, "a:1")
		}
		mustExec(t, s.o, "UPDATE sale_sku SET rebuilding = 0 WHERE sku = 'sku'")
		for _, epoch := range []int64{1, 3} {
			noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneStock, epoch, ids))
			s.wantUnsentOf(testKey, "a:1")
		}
		noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneStock, 2, ids))
		s.wantUnsentOf(testKey)
	})
}

// TestUnsentOfARebuild: what cannot be delivered is in nobody's way, and is told to the rebuild alone.
func TestUnsentOfARebuild(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.decide(job("a", "a", 1), job("b", "b", 1), job("e", "e", 1))
		_, err := s.o.Decide(s.Context(), &flashsale.Batch{Key: otherKey, Epoch: 1, Jobs: []flashsale.Job{job("c", "c", 1), job("d", "d", 1)}})
		noError(t, "Decide", err)
		s.wantUnsent(flashsale.LaneStock, "a:1", "b:1", "e:1", "c:1", "d:1")
		mustExec(t, s.o, "UPDATE sale_sku SET rebuilding = 1 WHERE sku = 'sku'")
		s.wantUnsent(flashsale.LaneStock, "c:1", "d:1")
		s.wantUnsent(flashsale.LaneRelay, "a:1", "b:1", "e:1", "c:1", "d:1")
		s.wantUnsentOf(testKey, "a:1", "b:1", "e:1")
		s.wantUnsentOf(otherKey, "c:1", "d:1")
	})
}
