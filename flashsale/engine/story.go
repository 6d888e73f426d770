package engine

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// storyRows bounds a story.
const storyRows = 200

// Chapter is one reservation of a story, with all that was tried to pay for it.
type Chapter struct {
	Reservation flashsale.Reservation
	Payments    []flashsale.Payment
}

// Story tells what SQL knows of a shopper in a sale, newest first, at most 200 reservations: reserved, refused (with the reason), paid,
// given back, and every payment. What is pending now, or was refused before it came to SQL, has left no row: see [Engine.Refusals].
func (e *Engine) Story(ctx context.Context, sale, user string) ([]Chapter, error) {
	if err := flashsale.CheckUser(user); err != nil {
		return nil, err
	}
	rows, err := e.orders.OfUser(ctx, sale, user, storyRows)
	if err != nil {
		return nil, err
	}
	story := make([]Chapter, len(rows))
	for i := range rows {
		story[i].Reservation = rows[i]
		if rows[i].State == flashsale.Rejected {
			continue
		}
		if story[i].Payments, err = e.orders.PaymentsOf(ctx, rows[i].RID); err != nil {
			return nil, err
		}
	}
	return story, nil
}
