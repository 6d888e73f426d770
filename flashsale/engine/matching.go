package engine

import "time"

// matching is what matches have found and nothing has mended yet, and how far the instance that has the job of matching has come.
type matching struct {
	// differed is what the last match has found, and of what those before it have found what it has not looked at.
	differed map[differenceID]lasting
	// floor is how far back a match has looked that has found what is more than can be remembered; zero: there is no such thing.
	floor time.Time
	// ours: this instance has the job. Then noted is what it has noted last for whoever takes the job over, and from is where it goes on
	// itself as long as nobody else has noted anything.
	ours        bool
	noted, from time.Time
}

// lasting is a difference, and how far back the match has looked that has found it.
type lasting struct {
	Difference
	from time.Time
}

// matchesFrom begins a pass of the job: it is where to look from, given what is noted. What an instance without the job has found stands
// no more when it gets it: others have looked since.
func (p *paying) matchesFrom(noted time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.matching
	if !s.ours {
		*s = matching{ours: true}
	}
	if s.from.IsZero() || !s.noted.Equal(noted) {
		return noted
	}
	return s.from
}

// matched notes that a pass that began at a time has come to its end, with what it has noted.
func (p *paying) matched(noted, began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := &p.matching; s.ours {
		if s.noted, s.from = noted, began; !s.floor.IsZero() {
			s.from = noted
		}
	}
}

// oldest is from when on a match has to look that finds all that stands, of matches up to one that began at a time.
func (p *paying) oldest(began time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := began.Add(-matchBack)
	for _, d := range p.matching.differed {
		oldest = earlier(oldest, d.from)
	}
	return earlier(oldest, p.matching.floor).Add(matchBack)
}

// judge remembers what a match has found, with what those before it have found and it has not looked at, and counts what was known already.
func (s *matching) judge(m *match) (again int) {
	found := make(map[differenceID]lasting, len(m.report.Differences))
	for i := range m.report.Differences {
		d := &m.report.Differences[i]
		if _, d.Again = s.differed[d.id()]; d.Again {
			again++
		}
		found[d.id()] = lasting{*d, m.from}
	}
	floor := time.Time{}
	if m.unnamed > 0 { // of what was not asked for nobody knows that it differs
		floor = m.from
	}
	for id, d := range s.differed {
		_, looked := m.looked[d.spot()]
		if _, ok := found[id]; ok || looked || !m.from.After(d.from) {
			continue
		}
		if again++; len(found) < maxDifferences {
			found[id] = d
		} else {
			floor = earlier(d.from, floor)
		}
	}
	if m.from.After(s.floor) { // what is beyond it was not looked at
		floor = earlier(s.floor, floor)
	}
	s.differed, s.floor = found, floor
	return again
}

// earlier is the earlier of two times; one that is zero is none.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// spots are where something differed.
func (p *paying) spots() map[spot]struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[spot]struct{}, len(p.matching.differed))
	for _, d := range p.matching.differed {
		all[d.spot()] = struct{}{}
	}
	return all
}
