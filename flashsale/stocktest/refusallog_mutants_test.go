package stocktest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/stocktest"
	"github.com/headgate-io/headgate/internal/mutanttest"
)

var refusalSuite = mutanttest.Suite{Test: "TestRefusalMutant"}

// bentLog is a log of refusals with a fault.
type bentLog struct {
	*memstock.Stock
	append func(entry []byte) [][]byte
	find   func(q *flashsale.RefusalQuery)
	found  func(p *flashsale.RefusalPage)
}

func (b *bentLog) AppendRefusals(ctx context.Context, entry []byte) error {
	entries := [][]byte{entry}
	if b.append != nil {
		entries = b.append(entry)
	}
	for _, e := range entries {
		if err := b.Stock.AppendRefusals(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (b *bentLog) FindRefusals(ctx context.Context, q flashsale.RefusalQuery) (flashsale.RefusalPage, error) {
	if b.find != nil {
		q.Needles = slices.Clone(q.Needles)
		b.find(&q)
	}
	p, err := b.Stock.FindRefusals(ctx, q)
	if b.found != nil {
		b.found(&p)
	}
	return p, err
}

// refusalMutants are logs with a fault, and the parts of the suite that must see it.
func refusalMutants() map[string]struct {
	parts []string
	bend  func(*bentLog)
} {
	type mutant = struct {
		parts []string
		bend  func(*bentLog)
	}
	return map[string]mutant{
		"none":             {nil, func(*bentLog) {}},
		"entries twice":    {[]string{"find", "parallel"}, func(b *bentLog) { b.append = func(e []byte) [][]byte { return [][]byte{e, e} } }},
		"the oldest first": {[]string{"find", "pages", "parallel"}, func(b *bentLog) { b.found = func(p *flashsale.RefusalPage) { slices.Reverse(p.Entries) } }},
		"the first needle alone": {[]string{"find"}, func(b *bentLog) {
			b.find = func(q *flashsale.RefusalQuery) { q.Needles = q.Needles[:min(1, len(q.Needles))] }
		}},
		"the first page alone":  {[]string{"pages"}, func(b *bentLog) { b.found = func(p *flashsale.RefusalPage) { p.Cursor = "" } }},
		"since the end of days": {[]string{"age", "bytes", "began"}, func(b *bentLog) { b.found = func(p *flashsale.RefusalPage) { p.Since = time.Time{} } }},
		"what is cut off": {[]string{"hostile"}, func(b *bentLog) {
			b.append = func(e []byte) [][]byte { return [][]byte{e[:min(len(e), flashsale.MaxRefusalEntry-1)]} }
		}},
		"an empty one is nothing": {[]string{"began", "age"}, func(b *bentLog) {
			b.append = func(e []byte) [][]byte {
				if len(e) == 0 {
					return nil
				}
				return [][]byte{e}
			}
		}},
	}
}

// TestRefusalMutant runs the suite on a mutant, for TestRefusalsCatches.
func TestRefusalMutant(t *testing.T) {
	name := refusalSuite.Chosen(t)
	m, ok := refusalMutants()[name]
	if !ok {
		t.Fatalf("no mutant is named %q", name)
	}
	stocktest.ExerciseRefusals(t, func(_ *testing.T, now func() time.Time, bytes int) flashsale.RefusalLog {
		b := &bentLog{Stock: memstock.New(memstock.Config{Now: now, MaxRefusalBytes: bytes})}
		m.bend(b)
		return b
	})
}

// TestRefusalsCatches: each part of the suite that is meant to see a fault sees it, and sees none where none is.
func TestRefusalsCatches(t *testing.T) {
	var all []mutanttest.Mutant
	for name, m := range refusalMutants() {
		all = append(all, mutanttest.Mutant{Name: name, Parts: m.parts})
	}
	refusalSuite.Catch(t, all...)
}
