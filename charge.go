package headgate

import "time"

// MaxCharges is the most charges of one take.
const MaxCharges = 128

// MaxHolder is the longest name of a holder, in bytes.
const MaxHolder = 128

// Mode tells what a charge does in a take.
type Mode uint8

const (
	// Pay is judged and, if the whole take passes, charged.
	Pay Mode = iota
	// Check is judged at its cost and charges nothing.
	Check
	// Settle never denies: it charges the smaller of its cost and what is left. It is for a cost known only after the fact.
	Settle
	// Shadow charges form a group of their own. The group is paid only if all paying and checking charges pass and the
	// group itself passes, and it never denies the take.
	Shadow
)

var modeNames = [...]string{"pay", "check", "settle", "shadow"}

// String returns "pay", "check", "settle" or "shadow".
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "mode(?)"
}

// Charge asks for Cost units of a limit on one key. The identity of the state behind it is (Slot, Key) within the
// namespace of the store: the limit may change between takes, and the state is kept as docs/algorithms.md says.
type Charge struct {
	// Slot names the limit among all that a program has, such as "login/0". Its number is bounded by the program's text:
	// never build it from what a client sends.
	Slot string
	// Key names who is limited, such as an address or a user. Any bytes, any length.
	Key string
	// Limit is the limit to judge by. Keep it prepared: making one parses and allocates.
	Limit Limit
	// Cost is what to take, 0 to MaxCount. The zero value is a peek: it changes nothing and is allowed unless the key is
	// locked out. See [One] for the common charge of cost 1.
	Cost int64
	// Mode tells what the charge does; the zero value pays.
	Mode Mode
	// Holder names who holds the slot of a Concurrency limit, at most MaxHolder bytes; others ignore it.
	Holder string
	// Lockout, if set, shuts the key for a time after denials by this charge.
	Lockout *Lockout
}

// One returns the charge of cost 1.
func One(slot, key string, limit Limit) Charge {
	return Charge{Slot: slot, Key: key, Limit: limit, Cost: 1}
}

// Lockout shuts a key after denials of the charge that carries it. While shut, every charge but a settling one is denied
// with [ReasonLockedOut], counts nothing and does not extend the time. When the key is shut again within For of its
// reopening, the time doubles, up to Max; Max after a reopening the ladder is forgotten.
type Lockout struct {
	// After is the number of denials that shut the key, at least 1.
	After int64
	// Within is the time, from the first of these denials, in which the others must come; 1 µs to MaxPeriod. It has no
	// meaning when After is 1 and may then be 0.
	Within time.Duration
	// For is the time that the key is shut, 1 µs to MaxPeriod.
	For time.Duration
	// Max is the longest time that doubling leads to, at least For; 0 stands for For, which never doubles.
	Max time.Duration
}

// Longest returns Max, or For where Max is 0.
func (l *Lockout) Longest() time.Duration {
	if l.Max == 0 {
		return l.For
	}
	return l.Max
}

// Validate reports the first thing that is wrong with the charges of one take as an [*Error], nil if nothing is. A store
// calls it before anything else, so that all stores refuse the same.
func Validate(charges []Charge) error {
	if len(charges) > MaxCharges {
		return newError(CodeTooManyCharges, "a take of %d charges is too large; %d are allowed", len(charges), MaxCharges)
	}
	for i := range charges {
		c := &charges[i]
		if c.Cost < 0 || c.Cost > MaxCount || c.Limit == nil || c.Mode > Shadow || c.Lockout != nil || c.Holder != "" || needsHolder(c) {
			if err := validateCharge(i, c); err != nil {
				return err
			}
		}
		for j := range i {
			if charges[j].Key == c.Key && charges[j].Slot == c.Slot {
				return chargeError(CodeDuplicateCharge, i, "slot %q and its key stand in charge %d already; add the costs up", c.Slot, j)
			}
		}
	}
	return nil
}

func needsHolder(c *Charge) bool {
	_, ok := c.Limit.(Concurrency)
	return ok
}

func validateCharge(i int, c *Charge) error {
	switch {
	case c.Cost < 0:
		return chargeError(CodeInvalidCost, i, "cost %d is negative; use a refund to give back", c.Cost)
	case c.Cost > MaxCount:
		return chargeError(CodeInvalidCost, i, "cost %d is above %d", c.Cost, int64(MaxCount))
	case c.Limit == nil:
		return chargeError(CodeInvalidLimit, i, "slot %q has no limit", c.Slot)
	case c.Mode > Shadow:
		return chargeError(CodeInvalidCharge, i, "mode %d is unknown", c.Mode)
	case len(c.Holder) > MaxHolder:
		return chargeError(CodeInvalidCharge, i, "the holder has %d bytes; %d are allowed", len(c.Holder), MaxHolder)
	case c.Lockout != nil:
		if err := c.Lockout.validate(i); err != nil {
			return err
		}
	}
	if needsHolder(c) {
		switch {
		case c.Cost > 1:
			return chargeError(CodeInvalidCost, i, "cost %d of a concurrency limit: a holder takes 0 or 1", c.Cost)
		case c.Cost == 1 && c.Holder == "":
			return chargeError(CodeInvalidCharge, i, "a concurrency limit needs the name of the holder")
		}
	}
	return nil
}

func (l *Lockout) validate(charge int) error {
	for _, f := range [...]struct {
		name  string
		value time.Duration
		zero  bool // whether 0 is allowed
	}{{"within", l.Within, l.After == 1}, {"for", l.For, false}, {"max", l.Max, true}} {
		bad := f.value < time.Microsecond || f.value > MaxPeriod || f.value%time.Microsecond != 0
		if bad && (f.value != 0 || !f.zero) {
			return chargeError(CodeInvalidCharge, charge, "lockout: %s=%s is no whole number of microseconds from 1us to 36500d", f.name, f.value)
		}
	}
	switch {
	case l.After < 1 || l.After > MaxCount:
		return chargeError(CodeInvalidCharge, charge, "lockout: after=%d is outside 1 to %d", l.After, int64(MaxCount))
	case l.Max != 0 && l.Max < l.For:
		return chargeError(CodeInvalidCharge, charge, "lockout: max=%s is shorter than for=%s", l.Max, l.For)
	}
	return nil
}
