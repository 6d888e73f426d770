package redisstock_test

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
)

func TestConformance(t *testing.T) {
	stocktest.Exercise(t, func(t *testing.T, now func() time.Time) stocktest.Stock {
		return open(t, redisstock.Config{Now: now})
	})
}
