package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// maxPages bounds the pages of one list: a server that never comes to an end is not followed for ever.
const maxPages = 10_000

// listed is a list that comes in pages.
type listed[T any] struct {
	get func(p saleadmin.Page) (*T, error)
	// next is where a page has the cursor of the one after it.
	next func(*T) *string
	// join puts a page behind those before it.
	join func(whole, part *T)
}

// all asks for page after page, until there is none or enough.
func (l *listed[T]) all(enough func(*T) bool) (*T, error) {
	whole, err := l.get(saleadmin.Page{})
	if err != nil {
		return nil, err
	}
	for n := 1; *l.next(whole) != "" && !enough(whole); n++ {
		if n == maxPages {
			return nil, fmt.Errorf("the list has no end: it was given up after %d pages", n)
		}
		part, err := l.get(saleadmin.Page{Cursor: *l.next(whole)})
		if err != nil {
			return nil, err
		}
		l.join(whole, part)
		*l.next(whole) = *l.next(part)
	}
	return whole, nil
}

func never[T any](*T) bool { return false }

// listSales lists so many of the newest sales.
func listSales(ctx context.Context, c *saleadmin.Client, limit int) (*saleadmin.List, error) {
	l := listed[saleadmin.List]{
		get:  func(p saleadmin.Page) (*saleadmin.List, error) { return c.List(ctx, p) },
		next: func(l *saleadmin.List) *string { return &l.Next },
		join: func(whole, part *saleadmin.List) { whole.Sales = append(whole.Sales, part.Sales...) },
	}
	whole, err := l.all(func(l *saleadmin.List) bool { return len(l.Sales) >= limit })
	if err == nil && len(whole.Sales) > limit {
		whole.Sales, whole.Next = whole.Sales[:limit], whole.Sales[limit-1].ID
	}
	return whole, err
}

func showSale(ctx context.Context, c *saleadmin.Client, sale string) (*saleadmin.Sale, error) {
	l := listed[saleadmin.Sale]{
		get:  func(p saleadmin.Page) (*saleadmin.Sale, error) { return c.Show(ctx, sale, p) },
		next: func(s *saleadmin.Sale) *string { return &s.Next },
		join: func(whole, part *saleadmin.Sale) {
			whole.SKUs = append(whole.SKUs, part.SKUs...)
			whole.Operations = append(whole.Operations, part.Operations...)
			slices.SortStableFunc(whole.Operations, func(a, b saleadmin.Operation) int { return b.CreatedAt.Compare(a.CreatedAt) })
		},
	}
	return l.all(never)
}

func reportSale(ctx context.Context, c *saleadmin.Client, sale, sku string) (*saleadmin.Report, error) {
	l := listed[saleadmin.Report]{
		get:  func(p saleadmin.Page) (*saleadmin.Report, error) { return c.Report(ctx, sale, sku, p) },
		next: func(r *saleadmin.Report) *string { return &r.Next },
		join: func(whole, part *saleadmin.Report) {
			whole.Audits = append(whole.Audits, part.Audits...)
			if whole.Reconciliation != nil && part.Reconciliation != nil {
				whole.Reconciliation.SKUs = append(whole.Reconciliation.SKUs, part.Reconciliation.SKUs...)
			}
		},
	}
	return l.all(never)
}

func planSale(ctx context.Context, c *saleadmin.Client, sale, sku string) (*saleadmin.Plans, error) {
	l := listed[saleadmin.Plans]{
		get:  func(p saleadmin.Page) (*saleadmin.Plans, error) { return c.PlanRebuild(ctx, sale, sku, p) },
		next: func(p *saleadmin.Plans) *string { return &p.Next },
		join: func(whole, part *saleadmin.Plans) { whole.Plans = append(whole.Plans, part.Plans...) },
	}
	return l.all(never)
}
