package algo

import (
	headgate "github.com/headgate-io/headgate"
)

// lock is the state of a lockout, beside that of the limit.
type lock struct {
	denials int64 // since first, towards the next shutting
	first   int64
	until   int64 // end of the current or last shutting; meaningful if length > 0
	length  int64 // of that shutting, µs
	ladder  int64 // how long after until the length is remembered, µs
	within  int64 // how long after first the denials are, µs
}

// shut returns how long the key is still shut. A clock that went back far does not prolong it beyond the longest.
func (k *lock) shut(l *headgate.Lockout, now int64) (left int64, healed bool) {
	if k == nil || k.length == 0 || k.until <= now {
		return 0, false
	}
	if most := l.Longest().Microseconds(); k.until-now > most {
		k.until = now + most
		return most, true
	}
	return k.until - now, false
}

// deny counts a denial of the limit and returns how long the key is now shut, 0 if it is not.
func (k *lock) deny(l *headgate.Lockout, now int64) (shut int64) {
	within := l.Within.Microseconds()
	if k.first > now {
		k.first = now
	}
	if k.denials == 0 || (k.first+within < now && l.After > 1) {
		k.denials, k.first = 0, now
	}
	k.within, k.ladder = within, l.Longest().Microseconds()
	if k.denials++; k.denials < l.After {
		return 0
	}
	k.length = k.next(l, now)
	k.until = now + k.length
	k.denials = 0
	return k.length
}

// next is the length of the next shutting.
func (k *lock) next(l *headgate.Lockout, now int64) int64 {
	base, longest := l.For.Microseconds(), l.Longest().Microseconds()
	switch since := now - k.until; {
	case k.length == 0 || since > longest:
		return base
	case since <= base:
		return min(2*k.length, longest)
	default:
		return min(k.length, longest)
	}
}

func (k *lock) idleAt() int64 {
	at := headgate.MinTime
	if k.length > 0 {
		at = k.until + k.ladder + 1
	}
	if k.denials > 0 {
		at = max(at, k.first+k.within+1)
	}
	return at
}
