package stocktest

import (
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// model is what a stock must be, in the plainest way: counters are sums over entries, and nothing is kept that could be looked up.
type model struct {
	pointer int64
	epochs  map[int64]*modelEpoch // those that something was loaded into
}

// current is the epoch of the pointer, nil while nothing was loaded into it.
func (m *model) current() *modelEpoch { return m.epochs[m.pointer] }

// refuses says with which code every call in an epoch fails, "" if it runs.
func (m *model) refuses(epoch int64) flashsale.Code {
	switch {
	case epoch != m.pointer || m.pointer == 0:
		return flashsale.CodeStaleEpoch
	case m.current() == nil || !m.current().loaded:
		return flashsale.CodeRebuilding
	}
	return ""
}

type modelEpoch struct {
	loaded   bool
	total    int64
	settings flashsale.Settings
	nextRate int64
	entries  map[string]*flashsale.Entry
	// forgotten is what users have bought under rids that are not known any more, and these rids.
	forgotten map[string]*flashsale.Buyer
	adjusted  map[string]bool
	queue     []*modelJob
	dead      []*modelJob
	// tokens are millionths of jobs that may be pulled; they were so many at filled.
	tokens int64
	filled time.Time
	// names are all rids and users that were ever known. Until calm nobody new gets more than above.
	names map[string]bool
	calm  time.Time
	above int64
}

type modelJob struct {
	flashsale.Job // its ID is known once it was pulled
	pulledAt      time.Time
	revived       bool
	reason        string
}

func newModelEpoch() *modelEpoch {
	return &modelEpoch{entries: map[string]*flashsale.Entry{}, forgotten: map[string]*flashsale.Buyer{}, adjusted: map[string]bool{}, names: map[string]bool{}}
}

// sum adds up the units of a class, of all users or of one.
func (e *modelEpoch) sum(class flashsale.Class, of func(user string) bool) (units int64) {
	for _, r := range e.entries {
		if r.State.Class() == class && of(r.User) {
			units += r.Quantity
		}
	}
	if class == flashsale.Sold {
		for user, b := range e.forgotten {
			if of(user) {
				units += b.Quantity
			}
		}
	}
	return units
}

func everybody(string) bool { return true }

func (e *modelEpoch) held() int64      { return e.sum(flashsale.Held, everybody) }
func (e *modelEpoch) sold() int64      { return e.sum(flashsale.Sold, everybody) }
func (e *modelEpoch) available() int64 { return e.total - e.held() - e.sold() }

// buyer is what a user holds and has bought.
func (e *modelEpoch) buyer(user string) flashsale.Buyer {
	b := flashsale.Buyer{User: user}
	for _, r := range e.entries {
		if r.User == user && r.State.Class() != flashsale.Free {
			b.Quantity += r.Quantity
			b.RIDs = append(b.RIDs, r.RID)
		}
	}
	if f := e.forgotten[user]; f != nil {
		b.Quantity += f.Quantity
		b.RIDs = append(b.RIDs, f.RIDs...)
	}
	slices.Sort(b.RIDs) // so that a walk can be made again
	return b
}

// pending lists what SQL has not decided.
func (e *modelEpoch) pending() (all []*flashsale.Entry) {
	for _, r := range e.entries {
		if r.State == flashsale.Pending {
			all = append(all, r)
		}
	}
	return all
}

// reserve says what T0 must answer, and does it.
func (e *modelEpoch) reserve(ask *flashsale.Ask, now time.Time) flashsale.Answer {
	if r := e.entries[ask.RID]; r != nil {
		if r.User != ask.User || r.Quantity != ask.Quantity {
			return flashsale.Answer{Code: flashsale.CodeConflict}
		}
		return flashsale.Answer{Known: true, Entry: *r}
	}
	s := &e.settings
	buyer := e.buyer(ask.User)
	switch {
	case ask.OnlyKnown:
		return flashsale.Answer{Code: flashsale.CodeTokenExpired}
	case s.Status != flashsale.Open:
		return flashsale.Answer{Code: flashsale.CodeNotOpen, Detail: string(s.Status)}
	case now.Before(s.OpensAt):
		return flashsale.Answer{Code: flashsale.CodeNotOpen, Detail: "not_yet"}
	case !now.Before(s.ClosesAt):
		return flashsale.Answer{Code: flashsale.CodeNotOpen, Detail: "ended"}
	case e.busy(now):
		return flashsale.Answer{Code: flashsale.CodeBusy}
	case buyer.Quantity+ask.Quantity > s.PurchaseLimit:
		return flashsale.Answer{Code: flashsale.CodePurchaseLimit, Holds: buyer.RIDs}
	case ask.Quantity > e.available() || now.Before(e.calm) && ask.Quantity > e.above && ask.Origin == "":
		return flashsale.Answer{Code: flashsale.CodeSoldOut}
	}
	r := &flashsale.Entry{
		RID: ask.RID, User: ask.User, Quantity: ask.Quantity, State: flashsale.Pending, At: now, Deadline: now.Add(flashsale.PendingFor),
	}
	e.put(r)
	e.queue = append(e.queue, &modelJob{Job: flashsale.Job{
		RID: ask.RID, User: ask.User, Quantity: ask.Quantity, Origin: ask.Origin, At: now, Deadline: r.Deadline,
	}})
	return flashsale.Answer{Accepted: true, Entry: *r}
}

func (e *modelEpoch) busy(now time.Time) bool {
	if e.nextRate != 0 || int64(len(e.queue)) >= e.settings.Rate*45 {
		return true
	}
	return len(e.queue) > 0 && now.Sub(e.queue[0].At) > flashsale.PendingFor/2
}

// put makes a reservation known.
func (e *modelEpoch) put(r *flashsale.Entry) {
	e.entries[r.RID] = r
	e.names[r.RID], e.names[r.User] = true, true
}

// lull says for how long no more than so many units are given.
func (e *modelEpoch) lull(now time.Time) (time.Duration, int64) {
	if s := &e.settings; s.Status != flashsale.Open || now.Before(s.OpensAt) || !now.Before(s.ClosesAt) {
		return 0, 0
	}
	if !now.Before(e.calm) || e.available() <= e.above {
		e.calm, e.above = now.Add(flashsale.LullFor), e.available()
	}
	return e.calm.Sub(now), e.above
}

// apply says what becomes of an effect, and follows it.
func (e *modelEpoch) apply(f *flashsale.Effect, now time.Time) flashsale.Applied {
	r := e.entries[f.RID]
	switch {
	case r != nil && (f.Version <= r.Version || r.State.Terminal()):
		return flashsale.AppliedOld
	case r != nil:
		r.State, r.Version, r.At = f.State, f.Version, now
		return flashsale.AppliedMoved
	case f.State.Class() != flashsale.Free:
		return flashsale.AppliedLost
	}
	e.put(&flashsale.Entry{RID: f.RID, User: f.User, Quantity: f.Quantity, State: f.State, Version: f.Version, At: now})
	return flashsale.AppliedStored
}

// take removes the job with an id from the queue and returns it, nil if there is none.
func (e *modelEpoch) take(id string) *modelJob {
	for i, j := range e.queue {
		if id != "" && j.ID == id {
			e.queue = append(e.queue[:i:i], e.queue[i+1:]...)
			return j
		}
	}
	return nil
}

func (e *modelEpoch) adjust(id string, delta int64) bool {
	done, seen := e.adjusted[id]
	if !seen {
		if done = e.available()+delta >= 0; done {
			e.total += delta
		}
		e.adjusted[id] = done
	}
	return done
}

func (e *modelEpoch) configure(s *flashsale.Settings) {
	if s.Version <= e.settings.Version {
		return
	}
	rate := e.settings.Rate
	e.settings, e.nextRate = *s, 0
	if s.Rate < rate {
		e.settings.Rate, e.nextRate = rate, s.Rate
	}
	e.lowerRate()
}

func (e *modelEpoch) lowerRate() {
	if e.nextRate != 0 && int64(len(e.queue)) <= e.nextRate*45 {
		e.settings.Rate, e.nextRate = e.nextRate, 0
	}
}

// ready is how many jobs may be pulled.
func (e *modelEpoch) ready(now time.Time) int64 {
	most := max(e.settings.Rate/10, 1) * 1_000_000
	e.tokens = min(e.tokens+now.Sub(e.filled).Microseconds()*e.settings.Rate, most)
	e.filled = now
	return e.tokens / 1_000_000
}

// split returns the jobs that a consumer has had for too long, and those that nobody has had.
func (e *modelEpoch) split(now time.Time) (late, waiting []*modelJob) {
	for _, j := range e.queue {
		switch {
		case j.pulledAt.IsZero():
			waiting = append(waiting, j)
		case now.Sub(j.pulledAt) > reclaim:
			late = append(late, j)
		}
	}
	return late, waiting
}

func (e *modelEpoch) revive(id string, now time.Time) bool {
	for i, j := range e.dead {
		if j.ID != id {
			continue
		}
		e.dead = append(e.dead[:i:i], e.dead[i+1:]...)
		r := e.entries[j.RID]
		if r == nil || r.State != flashsale.Pending || !now.Before(j.Deadline) {
			return false
		}
		j.ID, j.At, j.pulledAt, j.revived = "", now, time.Time{}, true
		e.queue = append(e.queue, j)
		return true
	}
	return false
}

// forget reports whether an entry was forgotten. What was sold under it stays sold.
func (e *modelEpoch) forget(rid string, now time.Time) bool {
	r := e.entries[rid]
	if r == nil || !r.State.Terminal() || now.Sub(r.At) <= flashsale.Retention {
		return false
	}
	if r.State == flashsale.Confirmed {
		b := e.forgotten[r.User]
		if b == nil {
			b = &flashsale.Buyer{User: r.User}
			e.forgotten[r.User] = b
		}
		b.Quantity += r.Quantity
		b.RIDs = append(b.RIDs, rid)
	}
	delete(e.entries, rid)
	return true
}

// onEdge reports whether a store may see this moment either way, where the contract says no more than "longer than".
func (e *modelEpoch) onEdge(now time.Time) bool {
	for _, j := range e.queue {
		if !j.pulledAt.IsZero() && now.Sub(j.pulledAt) == reclaim || now.Sub(j.At) == flashsale.PendingFor/2 {
			return true
		}
	}
	for _, r := range e.entries {
		if now.Sub(r.At) == flashsale.Retention {
			return true
		}
	}
	return false
}
