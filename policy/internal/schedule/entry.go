package schedule

import (
	"fmt"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Entry is a line of a schedule: other limits for a time.
type Entry struct {
	// Daily is the time of the day at which the entry is on. If it is nil, the entry is on once, from From until To, which is
	// not part of it; parts of a microsecond are left out.
	Daily    *Daily
	From, To time.Time
	// Limits take the place of the base limits one by one.
	Limits []headgate.Limit
	// Ramp is how long it takes from the base limits to these, linearly, from the begin of the entry. Default 0: at once.
	Ramp time.Duration
}

// String says when the entry is on.
func (e *Entry) String() string {
	if e.Daily != nil {
		return "daily " + e.Daily.String()
	}
	return e.From.Format(time.RFC3339Nano) + " to " + e.To.Format(time.RFC3339Nano)
}

// EntryError says what is wrong with an entry of a schedule.
type EntryError struct {
	// Entry counts from 0. Other is the entry that it overlaps, an earlier one; -1 if the fault is another.
	Entry, Other int
	Message      string
}

// Error returns the message, with the place of the entry in the list, counted from 1, in front.
func (e *EntryError) Error() string {
	return fmt.Sprintf("entry %d of the schedule: %s", e.Entry+1, e.Message)
}

// check returns what is wrong with an entry by itself, "" if nothing is.
func (e *Entry) check(base []headgate.Limit) string {
	if wrong := e.checkTime(); wrong != "" {
		return wrong
	}
	if len(e.Limits) != len(base) {
		return fmt.Sprintf("it has %s and the rule has %s; the limits of an entry replace those of the rule one by one",
			counted(len(e.Limits)), counted(len(base)))
	}
	for i, l := range e.Limits {
		if l == nil {
			return fmt.Sprintf("limit %d is missing", i+1)
		}
	}
	return e.checkRamp(base)
}

func (e *Entry) checkTime() string {
	switch {
	case e.Daily != nil && (e.Daily.loc == nil || e.Daily.start == e.Daily.end):
		return "its daily time is empty"
	case e.Daily != nil:
		return ""
	case e.From.IsZero() && e.To.IsZero():
		return "it has no time; give it daily, or from and to"
	case e.To.IsZero():
		return "from has no to; give it an end"
	case e.From.IsZero():
		return "to has no from; give it a begin"
	case micros(e.From) >= micros(e.To):
		return fmt.Sprintf("it ends, at %s, no later than it begins, at %s", e.To.Format(time.RFC3339Nano), e.From.Format(time.RFC3339Nano))
	}
	return ""
}

func (e *Entry) checkRamp(base []headgate.Limit) string {
	length := e.length()
	switch {
	case e.Ramp < 0:
		return fmt.Sprintf("ramp %s is negative; leave it out for none", e.Ramp)
	case e.Ramp == 0:
		return ""
	case e.Ramp > length:
		return fmt.Sprintf("ramp %s is longer than the entry; it lasts %s", e.Ramp, length)
	}
	for i, from := range base {
		if wrong := noWay(from, e.Limits[i]); wrong != "" {
			return fmt.Sprintf("ramp from %q to %q: %s; drop the ramp, which switches at once", from, e.Limits[i], wrong)
		}
	}
	return ""
}

func (e *Entry) length() time.Duration {
	if e.Daily != nil {
		return e.Daily.Length()
	}
	return e.To.Sub(e.From)
}

func counted(limits int) string {
	if limits == 1 {
		return "1 limit"
	}
	return fmt.Sprintf("%d limits", limits)
}
