package oracle

import headgate "github.com/headgate-io/headgate"

// lock is the lockout of one key.
type lock struct {
	count int64 // denials so far
	first int64 // time of the first of them
	until int64 // shut until
	last  int64 // how long it was shut last; 0: never
}

// at returns the lockout as it reads now; a nil one is open.
func (l *lock) at(now int64, by *headgate.Lockout) lock {
	if l == nil {
		return lock{until: now}
	}
	n := *l
	if n.last == 0 { // never shut yet
		n.until = now
		return n
	}
	n.until = min(n.until, now+inMicros(by.Longest()))
	return n
}

// deny counts one denial and returns for how long it shuts the key, 0 if it does not.
func (l *lock) deny(now int64, by *headgate.Lockout) int64 {
	l.first = min(l.first, now)
	if l.count == 0 || l.first+inMicros(by.Within) < now {
		l.count, l.first = 0, now
	}
	l.count++
	if l.count < by.After {
		return 0
	}
	l.last = l.length(now, by)
	l.until, l.count = now+l.last, 0
	return l.last
}

// length is the rung of the ladder: doubled soon after a reopening, repeated somewhat later, forgotten at last.
func (l *lock) length(now int64, by *headgate.Lockout) int64 {
	shortest, longest := inMicros(by.For), inMicros(by.Longest())
	open := now - l.until
	switch {
	case l.last == 0 || open > longest:
		return shortest
	case open <= shortest:
		return min(2*l.last, longest)
	}
	return min(l.last, longest)
}
