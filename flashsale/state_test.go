package flashsale

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// everyWay is the table once more, by hand.
func everyWay() map[[2]State]bool {
	return map[[2]State]bool{
		{None, Pending}: true, {Pending, Reserved}: true, {Pending, Rejected}: true, {Reserved, Confirming}: true, {Confirming, Reserved}: true,
		{Reserved, Confirmed}: true, {Confirming, Confirmed}: true, {Reserved, Cancelled}: true, {Reserved, Expired}: true, {Confirming, Expired}: true,
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	for from := None; from <= Rejected; from++ {
		for to := None; to <= Rejected; to++ {
			if got := from.CanBecome(to); got != everyWay()[[2]State{from, to}] {
				t.Errorf("%s to %s: %v", from, to, got)
			}
			if from.Terminal() && from.CanBecome(to) {
				t.Errorf("a way out of %s, to %s", from, to)
			}
		}
		if back, ok := ParseState(from.String()); !ok || back != from {
			t.Errorf("%s reads back as %s", from, back)
		}
	}
	if _, ok := ParseState("sold"); ok || State(99).String() != "unknown" {
		t.Error("there are other states")
	}
}

// TestClasses: what leaves the stock for good, and what comes back to it.
func TestClasses(t *testing.T) {
	t.Parallel()
	for s, want := range map[State]Class{None: Free, Pending: Held, Reserved: Held, Confirming: Held, Confirmed: Sold, Cancelled: Free, Expired: Free, Rejected: Free} {
		if s.Class() != want {
			t.Errorf("%s counts as %d", s, s.Class())
		}
	}
}

func TestTransitionsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	var names []string
	for _, tr := range Transitions() {
		if len(tr.From) == 0 || tr.By == "" || tr.Guard == "" || tr.Effect == "" {
			t.Errorf("%s is not told", tr.Name)
		}
		names = append(names, tr.Name)
	}
	if want := []string{"T0", "T1", "T1'", "T2", "T3", "T3b", "T4", "T5", "T6", "T7", "T8", "T9"}; !slices.Equal(names, want) {
		t.Errorf("the transitions are %q", names)
	}
}

// TestTransitionsAreDocumented: the table that people read is this one.
func TestTransitionsAreDocumented(t *testing.T) {
	t.Parallel()
	const page = "../docs/flashsale.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range Transitions() {
		from := make([]string, len(tr.From))
		for i, s := range tr.From {
			if from[i] = s.String(); s == None {
				from[i] = "–"
			}
		}
		row := fmt.Sprintf("| %s | %s → %s | %s | %s | %s |\n", tr.Name, strings.Join(from, ", "), tr.To, tr.By, tr.Guard, tr.Effect)
		if !strings.Contains(string(text), row) {
			t.Errorf("%s lacks the row %s", page, row)
		}
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	all := []Status{Draft, Open, Paused, Draining, Closed}
	ways := map[[2]Status]bool{{Draft, Open}: true, {Open, Paused}: true, {Paused, Open}: true, {Open, Draining}: true, {Paused, Draining}: true, {Draining, Closed}: true}
	for _, from := range all {
		for _, to := range all {
			if from.CanBecome(to) != ways[[2]Status{from, to}] {
				t.Errorf("%s to %s: %v", from, to, from.CanBecome(to))
			}
		}
		if from.Decides() != (from != Draft && from != Closed) {
			t.Errorf("%s decides: %v", from, from.Decides())
		}
	}
}
