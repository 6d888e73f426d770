package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
)

// goneStock is a Stock that does not answer: neither who looks at how it is set up nor who asks for a key. After left more calls of View it is gone.
type goneStock struct {
	Stock
	left, asked int
	setUp       bool // it can be looked at how it is set up
}

var errGone = &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "Redis stock.example.com:6379 does not answer: connection refused"}

func (s *goneStock) View(ctx context.Context, key flashsale.Key) (flashsale.StockView, error) {
	if s.left--; s.left >= 0 {
		return s.Stock.View(ctx, key)
	}
	s.asked++
	return flashsale.StockView{}, errGone
}

func (s *goneStock) Check(context.Context) error {
	if s.setUp {
		return nil
	}
	return errGone
}

// TestPreflightWithoutTheStock: why the stock does not answer is said once, and it is not asked again for each sku; what could not be checked
// for that is said shortly, and stops an opening as well.
func TestPreflightWithoutTheStock(t *testing.T) {
	t.Parallel()
	const (
		gone   = "Redis stock.example.com:6379 does not answer: connection refused"
		equal  = "stops equal : whether stock and SQL are equal cannot be said: the stock does not answer"
		clocks = "stops clocks : the clock of the stock cannot be asked: the stock does not answer"
	)
	for name, c := range map[string]struct {
		stock goneStock
		want  []string
		asked int
	}{
		"all the time":                 {goneStock{}, []string{"stops stock : " + gone, equal, clocks}, 1},
		"but for how it is set up":     {goneStock{setUp: true}, []string{"stops stock : " + gone, equal, clocks}, 1},
		"after it has been looked at":  {goneStock{setUp: true, left: 1}, []string{"stops equal eleven/a-case: " + gone, equal, clocks}, 2},
		"after one sku was looked at":  {goneStock{setUp: true, left: 3}, []string{"stops equal eleven/phone: " + gone, equal, clocks}, 2},
		"not before the clocks, then ": {goneStock{setUp: true, left: 5}, []string{"stops clocks : the clock of the stock cannot be asked: " + gone}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, _ := openHalf(t)
			c.stock.Stock = k.engine.stock
			k.engine.stock = &c.stock
			findings, err := k.engine.Preflight(t.Context())
			k.must(err)
			var lines []string
			for _, f := range findings {
				if f.Check != "consumers" && f.Check != "durable" {
					lines = append(lines, string(f.Severity)+" "+f.Check+" "+f.SKU+": "+f.Text)
				}
			}
			if got, want := strings.Join(lines, "\n"), strings.Join(c.want, "\n"); got != want || c.stock.asked != c.asked {
				t.Errorf("it finds\n%s\nwant\n%s\nthe stock was asked %d times for nothing, want %d", got, want, c.stock.asked, c.asked)
			}
		})
	}
}
