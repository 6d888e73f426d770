package memstock_test

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
)

func TestExercise(t *testing.T) {
	stocktest.Exercise(t, func(t *testing.T, now func() time.Time) stocktest.Stock {
		s := memstock.New(memstock.Config{Now: now})
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
