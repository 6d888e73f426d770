package saleadmin

import "context"

// The kinds of StatusOrder.
const (
	Pause  = "pause"
	Resume = "resume"
	Drain  = "drain"
	Close  = "close"
)

// List lists sales, newest first.
func (c *Client) List(ctx context.Context, p Page) (*List, error) {
	return ask[List](ctx, c, call{method: "GET", query: p.query(nil)})
}

// Show returns a sale and where it stands, with a page of its skus.
func (c *Client) Show(ctx context.Context, sale string, p Page) (*Sale, error) {
	return ask[Sale](ctx, c, call{method: "GET", path: id(sale), query: p.query(nil)})
}

// Preflight says what is not ready for the opening of a sale, or ("") of any.
func (c *Client) Preflight(ctx context.Context, sale string) (*Preflight, error) {
	if sale == "" {
		sale = everySale
	}
	return ask[Preflight](ctx, c, call{method: "GET", path: id(sale, "preflight")})
}

// Report says whether the stores agree on a sku, or ("") on each of a page of a sale's.
func (c *Client) Report(ctx context.Context, sale, sku string, p Page) (*Report, error) {
	return ask[Report](ctx, c, call{method: "GET", path: id(sale, "report"), query: p.query(only("sku", sku))})
}

// Story tells all that is known of a shopper in a sale.
func (c *Client) Story(ctx context.Context, sale, user string) (*Story, error) {
	return ask[Story](ctx, c, call{method: "GET", path: id(sale, "story"), query: only("user", user)})
}

// PlanRebuild is the dry run of Rebuild, of a sku, or ("") of a page of a sale's.
func (c *Client) PlanRebuild(ctx context.Context, sale, sku string, p Page) (*Plans, error) {
	return ask[Plans](ctx, c, call{method: "GET", path: id(sale, "rebuild"), query: p.query(only("sku", sku))})
}

// DeadLetters lists the jobs of a sku that could not be decided; a limit of 0 is the server's.
func (c *Client) DeadLetters(ctx context.Context, sale, sku string, limit int) (*DeadLetters, error) {
	return ask[DeadLetters](ctx, c, call{method: "GET", path: id(sale, "skus", sku, "dead-letters"), query: only("limit", count(limit))})
}

// Create creates a sale.
func (c *Client) Create(ctx context.Context, operation string, o CreateOrder) (*Created, error) {
	return ask[Created](ctx, c, call{method: "POST", body: o, id: operation})
}

// Drop removes a sale that was never opened.
func (c *Client) Drop(ctx context.Context, operation, sale string, o DropOrder) (*Dropped, error) {
	return ask[Dropped](ctx, c, call{method: "POST", path: id(sale, "drop"), body: o, id: operation})
}

// Open opens a sale.
func (c *Client) Open(ctx context.Context, operation, sale string, o OpenOrder) (*Change, error) {
	return ask[Change](ctx, c, call{method: "POST", path: id(sale, "open"), body: o, id: operation})
}

// Status pauses, resumes, drains or closes a sale, by one of the constants.
func (c *Client) Status(ctx context.Context, operation, sale, verb string, o StatusOrder) (*Change, error) {
	return ask[Change](ctx, c, call{method: "POST", path: id(sale, verb), body: o, id: operation})
}

// SetRate sets how many reservations SQL is given in a second.
func (c *Client) SetRate(ctx context.Context, operation, sale string, o RateOrder) (*Change, error) {
	return ask[Change](ctx, c, call{method: "POST", path: id(sale, "rate"), body: o, id: operation})
}

// TopUp adds units to a sku.
func (c *Client) TopUp(ctx context.Context, operation, sale, sku string, o UnitsOrder) (*Change, error) {
	return ask[Change](ctx, c, call{method: "POST", path: id(sale, "skus", sku, "top-up"), body: o, id: operation})
}

// Withdraw takes units from a sku.
func (c *Client) Withdraw(ctx context.Context, operation, sale, sku string, o UnitsOrder) (*Change, error) {
	return ask[Change](ctx, c, call{method: "POST", path: id(sale, "skus", sku, "withdraw"), body: o, id: operation})
}

// Rebuild loads the stock anew from SQL.
func (c *Client) Rebuild(ctx context.Context, operation, sale string, o StatusOrder) (*Change, error) {
	return ask[Change](ctx, c, call{method: "POST", path: id(sale, "rebuild"), body: o, id: operation})
}

// Revive has dead letters decided once more.
func (c *Client) Revive(ctx context.Context, operation, sale, sku string, o ReviveOrder) (*Revived, error) {
	return ask[Revived](ctx, c, call{method: "POST", path: id(sale, "skus", sku, "dead-letters", "revive"), body: o, id: operation})
}

// Match compares provider, payments and orders.
func (c *Client) Match(ctx context.Context, operation string, o MatchOrder) (*Match, error) {
	return ask[Match](ctx, c, call{method: "POST", path: "/~/match", body: o, id: operation})
}
