package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestStory(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	sold := k.sold("a")
	late := k.reserve("a")
	k.clock.advance(flashsale.PendingFor)
	k.once("the sweeper", k.engine.SweepOnce, 1)
	story, err := k.engine.Story(t.Context(), "eleven", "a")
	k.must(err)
	if len(story) != 2 || story[0].Reservation.RID != late || story[0].Reservation.Reason != flashsale.ReasonDeadline || len(story[0].Payments) != 0 {
		t.Fatalf("the story is %+v", story)
	}
	if c := story[1]; c.Reservation.RID != sold || c.Reservation.State != flashsale.Confirmed || len(c.Payments) != 1 || c.Payments[0].AppliedTo != sold {
		t.Errorf("the first chapter is %+v", c)
	}
	if story, err = k.engine.Story(t.Context(), "eleven", "b"); err != nil || len(story) != 0 {
		t.Errorf("of somebody else: %+v, %v", story, err)
	}
	_, err = k.engine.Story(t.Context(), "eleven", "")
	wantCode(t, "nobody's", err, flashsale.CodeInvalidArgument)
}

// TestStoryOfWhatIsPending: what waits in the stock comes first, of every sku, once it is decided as SQL says it, and an error of the stock does
// not keep what SQL knows from being told.
func TestStoryOfWhatIsPending(t *testing.T) {
	t.Parallel()
	k, stock := openHalf(t)
	told := func() (lines []string) {
		t.Helper()
		story, err := k.engine.Story(t.Context(), "eleven", "ann")
		k.must(err)
		for _, c := range story {
			lines = append(lines, c.Reservation.Key.SKU+" "+c.Reservation.State.String())
		}
		return lines
	}
	k.held("ann")
	k.clock.advance(time.Second)
	rid := k.reserve("ann")
	k.reserve("bob")
	mine := k.key
	k.key = stock.down
	k.clock.advance(time.Second)
	k.reserve("ann")
	k.key = mine
	if got, want := told(), []string{"a-case pending", "phone pending", "phone reserved"}; !slices.Equal(got, want) {
		t.Errorf("told is %v, want %v", got, want)
	}
	story, err := k.engine.Story(t.Context(), "eleven", "ann")
	k.must(err)
	if r := story[1].Reservation; r.RID != rid || r.User != "ann" || r.Quantity != 1 || r.Amount != 100 || r.Currency != "CNY" || r.Until.Sub(r.CreatedAt) != flashsale.PendingFor {
		t.Errorf("the pending one is %+v", r)
	}
	k.ghostOf(rid, "ann") // SQL has decided, and the stock does not follow yet
	if got, want := told(), []string{"a-case pending", "phone reserved", "phone reserved"}; !slices.Equal(got, want) {
		t.Errorf("told is %v, want %v", got, want)
	}
	k.goDown(stock)
	story, err = k.engine.Story(t.Context(), "eleven", "ann")
	wantCode(t, "with a node that is down", err, flashsale.CodeUnavailable)
	if len(story) != 2 || !strings.Contains(err.Error(), "eleven/a-case") {
		t.Errorf("with a node that is down told is %+v: %v", story, err)
	}
	story, err = k.engine.Story(t.Context(), "eleven", "nobody")
	wantCode(t, "with a node that is down", err, flashsale.CodeUnavailable)
	if story == nil || len(story) != 0 {
		t.Errorf("of nobody told is %+v", story)
	}
	_, err = k.engine.Story(t.Context(), "twelve", "ann")
	wantCode(t, "of no sale", err, flashsale.CodeUnknownSale)
}
