package redisstock

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	keysPulls = 8 // how many keys of head.lua it takes to pull
	keysDead  = 10
)

// Pull implements [flashsale.Queue].
func (s *Stock) Pull(ctx context.Context, key flashsale.Key, epoch int64, consumer string, limit int, reclaim time.Duration) ([]flashsale.Job, error) {
	o, err := s.op(s.scripts.pull, key, epoch, keysPulls, "a pull")
	if err != nil {
		return nil, err
	}
	if consumer == "" || len(consumer) > flashsale.MaxUser {
		return nil, failf(flashsale.CodeInvalidArgument, nil, "a consumer whose name has %d bytes; give 1 to %d", len(consumer), flashsale.MaxUser)
	}
	o.args = []string{consumer, strconv.Itoa(min(max(limit, 0), maxList)), itoa(max(reclaim.Microseconds(), 1))}
	all, err := s.run(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(all)%3 != 0 {
		return nil, badReply(o.what)
	}
	jobs := make([]flashsale.Job, 0, len(all)/3)
	for i := 0; i < len(all); i += 3 {
		id, err1 := all[i].ToString()
		deliveries, err2 := all[i+1].AsInt64()
		raw, err3 := all[i+2].ToString()
		job, ok := parseJob(id, raw)
		if err1 != nil || err2 != nil || err3 != nil || !ok {
			return nil, badReply(o.what)
		}
		job.Deliveries = deliveries
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// Bury implements [flashsale.Queue]. A job that is not in the queue any more is left where it is.
func (s *Stock) Bury(ctx context.Context, key flashsale.Key, epoch int64, job *flashsale.Job, reason string) error {
	o, err := s.op(s.scripts.bury, key, epoch, keysDead, "a burial")
	if err != nil {
		return err
	}
	if !isJobID(job.ID) { // nothing else is in the queue, and the script says whether the epoch holds
		o.args = []string{"0-1", "", "1"}
		return s.numbers(ctx, o)
	}
	o.args = []string{job.ID, reason[:min(len(reason), flashsale.MaxReason)], strconv.Itoa(s.cfg.MaxDead)}
	return s.numbers(ctx, o)
}

// Dead implements [flashsale.Queue].
func (s *Stock) Dead(ctx context.Context, key flashsale.Key, epoch int64, limit int) ([]flashsale.DeadJob, error) {
	o, err := s.op(s.scripts.dead, key, epoch, keysDead, "the dead letters")
	if err != nil {
		return nil, err
	}
	o.args = []string{strconv.Itoa(min(max(limit, 0), maxList))}
	all, err := s.run(ctx, o)
	if err != nil {
		return nil, err
	}
	return parseList(all, o.what, parseDead)
}

// Revive implements [flashsale.Queue]. A job that is put back has another id.
func (s *Stock) Revive(ctx context.Context, key flashsale.Key, epoch int64, ids []string) (int, error) {
	o, err := s.op(s.scripts.revive, key, epoch, keysDead, "a revival")
	if err != nil {
		return 0, err
	}
	if err := checkCount("dead letters", len(ids)); err != nil {
		return 0, err
	}
	o.args = slices.Compact(slices.Sorted(slices.Values(ids)))
	var n int64
	err = s.numbers(ctx, o, &n)
	return int(n), err
}
