package memstock

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// job is an entry's place in the queue.
type job struct {
	id           int64 // 0: not in the queue
	at, deadline int64 // the deadline is the reservation's, which forgets it when it is decided
	pulledAt     int64
	deliveries   int64
	link         link // of those that were pulled
}

// place is where a job stands, or has stood: then it has no entry.
type place struct {
	id    int64
	entry *entry
}

// queue has jobs in the order of their ids. Those that were not pulled are the places from next on. Places that were left are
// skipped, and taken out once they are more than half of all.
type queue struct {
	places     []place
	head, next int // no job stands before head, none that was not pulled before next
	jobs       int64
	pulled     list
	lastID     int64
}

// tidyAbove is how many places are few enough to be left alone.
const tidyAbove = 16

func (q *queue) depth() int64 { return q.jobs }

func (q *queue) add(e *entry, now int64) {
	q.lastID++
	e.job = job{id: q.lastID, at: now, deadline: e.deadline}
	q.places = append(q.places, place{q.lastID, e})
	q.jobs++
}

func (q *queue) remove(e *entry) {
	if e.job.deliveries > 0 {
		q.pulled.remove(e)
	}
	i, _ := q.locate(e.job.id)
	q.places[i].entry = nil
	e.job = job{}
	q.jobs--
	if int64(len(q.places)) > 2*q.jobs+tidyAbove {
		q.tidy()
	}
}

func (q *queue) tidy() {
	q.next = q.skip(q.next)
	waiting := int64(0)
	for _, p := range q.places[q.next:] {
		if p.entry != nil {
			waiting++
		}
	}
	q.places = slices.DeleteFunc(q.places, func(p place) bool { return p.entry == nil })
	q.head, q.next = 0, int(q.jobs-waiting)
}

// skip returns the first place from i on where a job stands.
func (q *queue) skip(i int) int {
	for i < len(q.places) && q.places[i].entry == nil {
		i++
	}
	return i
}

// first returns the oldest job, nil if there is none.
func (q *queue) first() *entry {
	q.head = q.skip(q.head)
	return q.at(q.head)
}

// age is that of the oldest job, in microseconds; 0 if there is none.
func (q *queue) age(now int64) int64 {
	if e := q.first(); e != nil {
		return max(now-e.job.at, 0)
	}
	return 0
}

// waiting returns the oldest job that was not pulled, nil if there is none.
func (q *queue) waiting() *entry {
	q.next = q.skip(q.next)
	return q.at(q.next)
}

func (q *queue) at(i int) *entry {
	if i < len(q.places) {
		return q.places[i].entry
	}
	return nil
}

// locate returns where a job with this id stands, or would stand, and whether it was ever there.
func (q *queue) locate(id int64) (int, bool) {
	return slices.BinarySearchFunc(q.places, id, func(p place, id int64) int { return cmp.Compare(p.id, id) })
}

// find returns the entry whose job has this id, nil if none has.
func (q *queue) find(id string) *entry {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil
	}
	if i, ok := q.locate(n); ok {
		return q.places[i].entry
	}
	return nil
}

// late returns the job that a consumer has had for the longest time, if that is at least reclaim. A clock that went back must not
// keep a job from being found: its time then begins anew.
func (q *queue) late(now, reclaim int64) *entry {
	e := q.pulled.head
	if e == nil {
		return nil
	}
	e.job.pulledAt = min(e.job.pulledAt, now)
	if now-e.job.pulledAt < reclaim {
		return nil
	}
	return e
}

// hand gives a job to a consumer.
func (q *queue) hand(e *entry, now int64) {
	if e.job.deliveries > 0 {
		q.pulled.remove(e)
	} else {
		q.next++ // it is the one that waiting has found
	}
	q.pulled.push(e)
	e.job.pulledAt = now
	e.job.deliveries++
}

func (e *entry) publicJob() flashsale.Job {
	return flashsale.Job{
		ID: strconv.FormatInt(e.job.id, 10), RID: e.rid, User: e.user, Quantity: e.quantity, Origin: e.origin, Seq: e.seq,
		At: fromMicro(e.job.at), Deadline: fromMicro(e.job.deadline), Deliveries: e.job.deliveries,
	}
}

// Pull implements [flashsale.Queue].
func (s *Stock) Pull(ctx context.Context, key flashsale.Key, epoch int64, _ string, limit int, reclaim time.Duration) ([]flashsale.Job, error) {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return nil, err
	}
	defer k.unlock()
	now := s.now()
	n := min(int64(limit), k.pace.ready(k.settings.Rate, now), k.queue.depth())
	if n <= 0 {
		return nil, nil
	}
	jobs := make([]flashsale.Job, 0, n)
	for int64(len(jobs)) < n {
		e := k.queue.late(now, max(reclaim.Microseconds(), 1)) // at least 1: none twice in a call
		if e == nil {
			e = k.queue.waiting()
		}
		if e == nil {
			break
		}
		k.queue.hand(e, now)
		jobs = append(jobs, e.publicJob())
	}
	k.pace.spend(int64(len(jobs)))
	return jobs, nil
}

// deadLetter is a job that could not be decided, under the id that it had in the queue.
type deadLetter struct {
	entry  *entry
	job    flashsale.Job
	reason string
	at     int64
}

// Bury implements [flashsale.Queue]. A job that is not in the queue any more is left where it is.
func (s *Stock) Bury(ctx context.Context, key flashsale.Key, epoch int64, job *flashsale.Job, reason string) error {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return err
	}
	defer k.unlock()
	e := k.queue.find(job.ID)
	if e == nil {
		return nil
	}
	now := s.now()
	if len(k.dead) >= s.cfg.MaxDead {
		k.dead = slices.Delete(k.dead, 0, 1+len(k.dead)-s.cfg.MaxDead)
	}
	k.dead = append(k.dead, deadLetter{entry: e, job: e.publicJob(), reason: reason[:min(len(reason), flashsale.MaxReason)], at: now})
	k.queue.remove(e)
	k.lowerRate(now)
	return nil
}

// Dead implements [flashsale.Queue].
func (s *Stock) Dead(ctx context.Context, key flashsale.Key, epoch int64, limit int) ([]flashsale.DeadJob, error) {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return nil, err
	}
	defer k.unlock()
	dead := make([]flashsale.DeadJob, 0, min(max(limit, 0), len(k.dead)))
	for i := range k.dead[:cap(dead)] {
		d := &k.dead[i]
		dead = append(dead, flashsale.DeadJob{Job: d.job, Reason: d.reason, DiedAt: fromMicro(d.at)})
	}
	return dead, nil
}

// Revive implements [flashsale.Queue].
func (s *Stock) Revive(ctx context.Context, key flashsale.Key, epoch int64, ids []string) (int, error) {
	k, err := s.lock(ctx, key, epoch)
	if err != nil {
		return 0, err
	}
	defer k.unlock()
	asked := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		asked[id] = struct{}{}
	}
	now, revived := s.now(), 0
	k.dead = slices.DeleteFunc(k.dead, func(d deadLetter) bool {
		if _, ok := asked[d.job.ID]; !ok {
			return false
		}
		if e := d.entry; e.state == flashsale.Pending && now < e.deadline {
			k.queue.add(e, now)
			revived++
		}
		return true
	})
	return revived, nil
}
