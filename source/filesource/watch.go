package filesource

import (
	"context"
	"crypto/sha256"
	"time"
)

// Times of Watch. A change is told within lookEvery + quiet of its end, and one without an end within lookEvery + maxWait.
const (
	// lookEvery is how long a change can go unseen.
	lookEvery = 250 * time.Millisecond
	// quiet is how long nothing may have changed until a change is taken for complete, maxWait how long that is awaited. Half
	// a policy can be a valid one, with half of its limits: who writes a file in place, as scp does, may pause in the middle
	// of it, and it is worth half a second not to believe that.
	quiet   = 500 * time.Millisecond
	maxWait = 5 * time.Second
	// settleEvery is how often it is looked at meanwhile.
	settleEvery = 100 * time.Millisecond
	// fresh is how long after a Load contents are compared and not stamps alone: within the grain of a file system's times,
	// which is two seconds at worst, a file can change twice and look the same.
	fresh = 2500 * time.Millisecond
)

// Watch looks at the document and at the files that were read for it four times a second.
//
// It does not ask the system to be told of changes. Such notices do not come from network file systems; they are of folders
// and inodes and not of names, so that every symlink on the way must be followed, and watched anew at every turn; and they can
// run out, so that one has to look all the same. To look at ten files costs less than 0.1 % of a processor, and half a second
// is soon enough.
func (s *Source) Watch(ctx context.Context, changed func()) error {
	w := watch{s: s}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if w.turned(ctx) && ctx.Err() == nil {
			changed()
		}
	}
}

// watch is what Watch keeps from look to look.
type watch struct {
	s *Source
	// last is the Load that the rest is about.
	last *loaded
	// seen is what there was when it was last compared to what that Load had found, and told that it was something else.
	seen look
	told bool
}

// turned tells whether there is something else than the last Load has found, once for each look of it.
func (w *watch) turned(ctx context.Context) bool {
	last := w.s.lastLoad()
	if last == nil {
		return false // whoever has not begun needs no telling
	}
	if last != w.last {
		w.last, w.seen, w.told = last, last.look(), false
	}
	now := w.s.look(last)
	switch {
	case !now.same(w.seen):
		now = w.settle(ctx, now)
	case w.told || last.folder != nil && time.Since(last.at) > fresh:
		return false
	}
	w.seen, w.told = now, w.s.differs(last)
	return w.told
}

// settle looks until nothing has changed for a while, and returns what it has seen last.
func (w *watch) settle(ctx context.Context, now look) look {
	begin := time.Now()
	for rest := begin; time.Since(rest) < quiet && time.Since(begin) < maxWait; {
		select {
		case <-ctx.Done():
			return now
		case <-time.After(settleEvery):
		}
		if next := w.s.look(w.last); !next.same(now) {
			now, rest = next, time.Now()
		}
	}
	return now
}

// differs reads everything, and tells whether it is other than what a Load has found.
func (s *Source) differs(last *loaded) bool {
	data, _, err := readDocument(s.file)
	if err != nil || last.folder == nil {
		return stampOf(nil, err).failed != last.stamp.failed
	}
	return sha256.Sum256(data) != last.sum || last.folder.Changed()
}
