package flashsale

// State is where a reservation stands.
type State uint8

// The states. Pending is known to the Stock alone; the others are rows in SQL.
const (
	None       State = iota // there is no such reservation
	Pending                 // units are taken in the Stock, SQL has not decided
	Reserved                // SQL holds the units: "yours until …"
	Confirming              // a payment is under way
	Confirmed               // paid: sold
	Cancelled               // given back by its owner or by an operator
	Expired                 // given back because it was not paid in time
	Rejected                // SQL has refused it; a tombstone
)

var stateNames = [...]string{"none", "pending", "reserved", "confirming", "confirmed", "cancelled", "expired", "rejected"}

// String returns the name of the state, as JSON and metrics show it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// ParseState returns the state of a name, and whether there is one.
func ParseState(name string) (State, bool) {
	for s, n := range stateNames {
		if n == name {
			return State(s), true
		}
	}
	return None, false
}

// Terminal reports whether there is no way out.
func (s State) Terminal() bool { return s >= Confirmed && s <= Rejected }

// Class says what a state's units count as.
type Class uint8

// The classes.
const (
	Free Class = iota // they can be reserved by others
	Held              // they are kept for someone
	Sold
)

// Class returns what the units of a reservation in this state count as, in the Stock and in SQL alike (SQL has no Pending).
func (s State) Class() Class {
	switch s {
	case Pending, Reserved, Confirming:
		return Held
	case Confirmed:
		return Sold
	}
	return Free
}

// Transition is one row of the table of states.
type Transition struct {
	Name string
	From []State
	To   State
	// By says who makes it: shopper, operator, consumer, sweeper, provider (a webhook, or the poller who asks).
	By string
	// Guard and Effect say it in words; the tests hold every adapter to them.
	Guard, Effect string
}

// Transitions is the table: whatever moves a reservation is one of these.
func Transitions() []Transition {
	return []Transition{
		{"T0", []State{None}, Pending, "shopper", "rid unknown, open by status and by the Stock's clock, token good, within the purchase limit, enough available", "available to held, the user's quantity, a deadline, a job in the queue"},
		{"T1", []State{Pending}, Reserved, "consumer", "no row; epoch, status, total and purchase limit of SQL", "row, buyer, ledger, unpaid order, outbox"},
		{"T1'", []State{Pending}, Rejected, "consumer", "no row, and the status, the total or the purchase limit of SQL forbids it", "a tombstone, outbox"},
		{"T2", []State{Pending}, Rejected, "sweeper", "past its deadline, no row", "a tombstone, outbox"},
		{"T3", []State{Reserved}, Confirming, "shopper", "not past its time", "time to pay, granted once; one live intent"},
		{"T3b", []State{Confirming}, Reserved, "provider", "the intent is void or has failed, not past its time", "can be paid again"},
		{"T4", []State{Reserved, Confirming}, Confirmed, "provider", "captured; amount and currency match", "reserved to sold, ledger, order paid, outbox"},
		{"T5", []State{Reserved}, Cancelled, "shopper, operator", "no live intent", "reserved to available, buyer, ledger, outbox"},
		{"T6", []State{Reserved}, Expired, "sweeper", "past its time and the grace", "as T5"},
		{"T7", []State{Confirming}, Expired, "provider", "the intent is void or has failed, past its time", "as T5"},
		{"T8", []State{None}, Confirmed, "provider", "captured for what has expired or was cancelled", "T0, T1 and T4 under a rid derived from the intent's key, or a refund"},
		{"T9", []State{Confirmed}, Confirmed, "provider", "captured once more, or another amount or currency", "a refund"},
	}
}

// CanBecome reports whether the table has a way from one state to another in one step.
func (s State) CanBecome(next State) bool {
	for _, t := range Transitions() {
		if t.To != next || t.Name == "T8" || t.Name == "T9" {
			continue
		}
		for _, from := range t.From {
			if from == s {
				return true
			}
		}
	}
	return false
}
