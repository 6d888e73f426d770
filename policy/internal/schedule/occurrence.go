package schedule

// Around a time, a zone's clock is looked at this far back and ahead. No zone was ever more than 16 hours from UTC, or skipped
// or repeated more than one day, so that an occurrence that holds the time, and the next one, lie well within.
const (
	lookBack  = 6 * day
	lookAhead = 14 * day
	// earlier is how many dates before the one at hand can have an occurrence that is still on, and one more.
	earlier = 3
	// later is how many dates after it are looked at for the next occurrence.
	later = 8
)

// around is the piece of time over which the clock must be known to place a time among the occurrences.
func around(t int64) span { return span{t - lookBack, t + lookAhead} }

// place finds the occurrence that holds a time, or the pause between two that does.
func (d *Daily) place(t int64, clock []stretch) (s span, on bool) {
	date := midnight(local(clock, t)) - earlier*day
	s.from = first(clock, date+d.start)
	for range earlier + later {
		o := d.on(date, clock)
		switch {
		case o.from >= o.until: // the clock skipped it
		case o.holds(t):
			return o, true
		case o.until <= t:
			s.from = o.until
		default:
			return span{s.from, o.from}, false
		}
		date += day
	}
	return span{s.from, first(clock, date)}, false
}

// on returns the occurrence that begins on a date, given as its midnight; it is empty if the clock skips it.
func (d *Daily) on(date int64, clock []stretch) span {
	return span{first(clock, date+d.start), first(clock, date+d.end)}
}
