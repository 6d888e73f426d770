package engine

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// firstLook and lastLook bound the time between two looks of Follow at what is decided and waits for its payment or its end.
const firstLook, lastLook = 500 * time.Millisecond, 3 * time.Second

// Follow returns where a user's reservation stands as soon as that is not what was known last any more; the zero Result knows nothing. It is
// told at once of what this process moves, and looks in growing intervals for what others do: at the Stock alone, as long as that knows of
// nothing new. A store that does not answer is waited for. When ctx ends, it returns what was known last, and CodeUnavailable; CodeNotFound
// if there is no such reservation of this user; CodeBusy if too many wait.
func (e *Engine) Follow(ctx context.Context, key flashsale.Key, rid, user string, last Result) (Result, error) {
	id := reservationID{key, rid}
	told, leave, ok := e.waiters.join(id)
	if !ok {
		return last, errorf(flashsale.CodeBusy, "too many calls wait for their results; ask for this one later")
	}
	defer leave()
	wait, most := firstPoll, lastPoll
	if last.Decided() {
		wait, most = firstLook, lastLook
	}
	now, err := e.newer(ctx, id, user, &last)
	for err == nil && !isNews(&now, &last) || err != nil && retriable(err) {
		next := time.NewTimer(jittered(wait))
		select {
		case <-told:
			now, err = e.resultOfSQL(ctx, id, user, nil)
		case <-next.C:
			now, err = e.newer(ctx, id, user, &last)
		case <-ctx.Done():
		}
		next.Stop()
		if ctx.Err() != nil && (err != nil || !isNews(&now, &last)) {
			return last, interrupted(ctx)
		}
		wait = min(wait*3/2, most)
	}
	if err != nil {
		return last, err
	}
	return now, nil
}

// isNews reports whether a result is another one than was known.
func isNews(now, last *Result) bool { return now.State != last.State || now.Version > last.Version }

// newer is Result, but spares SQL the question as long as the Stock knows of no later version than the last.
func (e *Engine) newer(ctx context.Context, id reservationID, user string, last *Result) (Result, error) {
	if last.Decided() {
		answer, found, err := e.entries.get(ctx, id)
		entry := &answer.entry
		if err == nil && found && answer.err == nil && entry.State != flashsale.None && entry.User == user && entry.Version <= last.Version {
			return *last, nil
		}
	}
	return e.Result(ctx, id.key, id.rid, user)
}
