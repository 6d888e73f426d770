package memstock_test

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
)

func TestRefusals(t *testing.T) {
	stocktest.ExerciseRefusals(t, func(t *testing.T, now func() time.Time, bytes int) flashsale.RefusalLog {
		s := memstock.New(memstock.Config{Now: now, MaxRefusalBytes: bytes})
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}

func TestRefusalsOfAClosedStock(t *testing.T) {
	s := memstock.New(memstock.Config{})
	if err := s.AppendRefusals(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if err := s.AppendRefusals(t.Context(), []byte("x")); flashsale.CodeOf(err) != flashsale.CodeClosed {
		t.Errorf("got %v", err)
	}
	if _, err := s.FindRefusals(t.Context(), flashsale.RefusalQuery{Needles: []string{"12345678"}}); flashsale.CodeOf(err) != flashsale.CodeClosed {
		t.Errorf("got %v", err)
	}
}
