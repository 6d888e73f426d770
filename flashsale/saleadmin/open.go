package saleadmin

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/headgate-io/headgate/flashsale/engine"
)

// everySale stands for all sales in the path of a check. It is the id of none.
const everySale = "~"

// open opens a sale or a sku after the check before an opening, unless an admin wants it all the same. An order that is repeated is not
// checked again.
func (a *api) open(q *request) error {
	var o OpenOrder
	if err := q.order(&o, &o.Reason, maxBody); err != nil {
		return err
	}
	if o.Force && q.actor.Role < Admin {
		return &Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "force needs the role admin, and " + q.actor.Name + " has the role " + q.actor.Role.String()}
	}
	q.command.SKU = o.SKU
	known, err := q.hasBegun(q.r.Context(), q.command)
	if err != nil {
		return err
	}
	if known {
		return q.run(o.SKU, nil, a.sales.OpenSale)
	}
	found, err := a.sales.Preflight(q.r.Context())
	if err != nil {
		return err
	}
	check := preflightOf(found, q.command.Sale, o.SKU)
	if !check.OK && !o.Force {
		return &Problem{
			Status: http.StatusConflict, Code: "preflight", Findings: check.Findings,
			Detail: "it is not ready to be opened; mend what the findings say, or have an admin open it with force",
		}
	}
	if !check.OK {
		q.log(slog.LevelWarn, "a sale is opened against the check before it", slog.String("sale", q.command.Sale), slog.Any("findings", check.Findings))
	}
	return q.run(o.SKU, check.Findings, a.sales.OpenSale)
}

// hasBegun reports whether a command was given before: whether its first operation is there.
func (q *request) hasBegun(ctx context.Context, c *engine.Command) (bool, error) {
	keys, err := q.keysOf(ctx, c.Sale, c.SKU)
	if err != nil {
		return false, err
	}
	id := c.ID
	if c.SKU == "" {
		id += ".1"
	}
	ops, err := q.sales.Operations(ctx, keys[0], maxOperations)
	if err != nil {
		return false, err
	}
	for i := range ops {
		if ops[i].ID == id {
			return true, nil
		}
	}
	return false, nil
}

func (a *api) preflight(q *request) error {
	values, err := q.query("sku")
	if err != nil {
		return err
	}
	sale := q.r.PathValue("sale")
	if sale != everySale {
		if _, err := q.keysOf(q.r.Context(), sale, values.Get("sku")); err != nil {
			return err
		}
	}
	found, err := a.sales.Preflight(q.r.Context())
	if err != nil {
		return err
	}
	return q.answer(http.StatusOK, preflightOf(found, sale, values.Get("sku")))
}

// preflightOf keeps the findings that matter for a sale, or for one sku of it.
func preflightOf(found []engine.Finding, sale, sku string) *Preflight {
	p := &Preflight{OK: true, Findings: []Finding{}}
	for _, f := range found {
		matters := f.SKU == "" || sale == everySale || f.SKU == sale+"/"+sku || sku == "" && strings.HasPrefix(f.SKU, sale+"/")
		if !matters {
			continue
		}
		p.OK = p.OK && f.Severity != engine.Stops
		p.Findings = append(p.Findings, Finding{Severity: string(f.Severity), Check: f.Check, SKU: f.SKU, Text: f.Text})
	}
	return p
}
