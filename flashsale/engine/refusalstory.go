package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// refusalWalk gathers what the log has of a user.
type refusalWalk struct {
	user uint64
	own  uint64 // the id of this instance's own entries
	// remembered is since when this instance remembers all of a kind by itself.
	remembered map[refusalKind]int64
	found      map[refusalKind]*Refusal
	seen       map[entryID]bool
	unreadable int
	dropped    refusalLoss
	// since is how far back the log reaches, reached how far back it was looked at; whole tells that it was to its beginning.
	since, reached time.Time
	whole          bool
}

// addFleet adds what the log has to what this instance remembers.
func (e *Engine) addFleet(ctx context.Context, user string, r *Refusals) {
	ctx, cancel := context.WithTimeout(ctx, storyTime)
	defer cancel()
	w := &refusalWalk{
		user: refusalName(user), own: e.refusalLog.id, remembered: map[refusalKind]int64{}, found: map[refusalKind]*Refusal{}, seen: map[entryID]bool{},
	}
	for i := range r.Of {
		one := r.Of[i]
		w.remembered[one.kind()], w.found[one.kind()] = one.First.UnixMicro(), &one
	}
	loss := e.refusals.untold()
	w.dropped.add(loss.count, loss.first, loss.last)
	err := w.walk(ctx, e.refusalLog.log)
	if err != nil && w.since.IsZero() {
		r.Missing = append(r.Missing, "what other instances have refused is not known: "+err.Error())
		return
	}
	w.tell(r, e.cfg.Now())
	switch {
	case w.whole:
	case ctx.Err() != nil:
		r.Missing = append(r.Missing, "there was no time to look further back than "+w.reached.UTC().Format(time.RFC3339))
	default:
		r.Missing = append(r.Missing, fmt.Sprintf("the log could not be read further back than %s: %v", w.reached.UTC().Format(time.RFC3339), err))
	}
	if err := e.refusalLog.why(); err != nil {
		r.Missing = append(r.Missing, "what other instances refuse may not be written at the moment: "+err.Error())
	}
}

// walk looks through the log, from its end to its beginning. With an error it is known what was read before.
func (w *refusalWalk) walk(ctx context.Context, log flashsale.RefusalLog) error {
	q := flashsale.RefusalQuery{Needles: []string{needle(w.user), needle(nobodysRefusals)}}
	for {
		page, err := log.FindRefusals(ctx, q)
		if err != nil {
			return err
		}
		w.since = latest(w.since, page.Since) // it may be trimmed meanwhile
		if !page.Reached.IsZero() {
			w.reached = page.Reached
		}
		for _, entry := range page.Entries {
			w.take(entry)
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			w.whole = true
			return nil
		}
	}
}

// take takes what an entry has of the user.
func (w *refusalWalk) take(raw string) {
	twice := false
	first := true
	err := readEntry(raw, func(id entryID, r *refusalRecord) {
		if first {
			first, twice = false, w.seen[id]
			w.seen[id] = true
		}
		switch {
		case twice:
		case r.user == nobodysRefusals && r.kind.code == codeDropped:
			w.dropped.add(r.count, r.first, r.last)
		case r.user == w.user:
			w.add(id, r)
		}
	})
	if err != nil {
		w.unreadable++
	}
}

func (w *refusalWalk) add(id entryID, r *refusalRecord) {
	if since, ok := w.remembered[r.kind]; ok && id.by == w.own && r.first >= since {
		return // that is counted already
	}
	one := w.found[r.kind]
	if one == nil {
		one = &Refusal{Key: r.kind.key, Code: r.kind.code, Detail: r.kind.detail, Rule: r.kind.rule, First: time.UnixMicro(r.first)}
		w.found[r.kind] = one
	}
	one.Count += r.count
	if first := time.UnixMicro(r.first); first.Before(one.First) {
		one.First = first
	}
	if last := time.UnixMicro(r.last); last.After(one.Last) {
		one.Last, one.Quantity, one.RetryAfter = last, r.quantity, time.Duration(r.retry)*time.Millisecond
	}
}

// tell says what was found, and what may be missing.
func (w *refusalWalk) tell(r *Refusals, now time.Time) {
	r.Fleet, r.Of = true, r.Of[:0]
	for _, one := range w.found {
		r.Of = append(r.Of, *one)
	}
	r.Since, r.Dropped = w.since.Add(clockMargin), w.dropped.count
	if !w.whole {
		r.Since = latest(r.Since, w.reached.Add(clockMargin))
	}
	if r.Since.After(now) {
		r.Since = now
	}
	if n := w.dropped.count; n > 0 {
		last := time.UnixMicro(w.dropped.last)
		r.Since = latest(r.Since, last)
		r.Missing = append(r.Missing, fmt.Sprintf("%d refusals of any shoppers were dropped unwritten, from %s to %s",
			n, time.UnixMicro(w.dropped.first).UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339)))
	}
	if w.unreadable > 0 {
		r.Missing = append(r.Missing, fmt.Sprintf("%d entries of the log are of another version, or damaged", w.unreadable))
	}
}

func (r *Refusal) kind() refusalKind {
	return refusalKind{key: r.Key, code: r.Code, detail: r.Detail, rule: r.Rule}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
