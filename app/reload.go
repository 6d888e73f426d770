package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/source"
)

// Times of a reload.
const (
	// patience is how long a version that cannot be put in force may still become another one before it is complained of: a
	// file that is written in two strokes with a pause is no mistake. longestPatience bounds it for one that never rests.
	patience        = 500 * time.Millisecond
	longestPatience = 3 * time.Second
	// shownVersion is how much of a version is shown.
	shownVersion = 12
)

// reloader keeps a guard at the newest version that its source has and that can be put in force.
type reloader struct {
	source source.Source
	// check refuses a policy that could be decided and not served; nil refuses none.
	check func(*policy.Engine) error
	// asked gets signals that ask to load; nil never does.
	asked <-chan os.Signal
	log   *slog.Logger

	guard   *Guard
	changed chan struct{} // holds one word that something has changed

	// version is the one in force, refusal what was refused since; "" for none. They are run's, and begin's before it.
	version, refusal string

	mu     sync.Mutex
	status PolicyStatus
}

// attempt is what came of loading once.
type attempt struct {
	trigger string
	version string // of the document, by which versions are told apart; "" if the source has none
	policy  *policy.Policy
	err     error
	began   time.Time
}

// first loads the policy to start with. What it cannot read is a [*UsageError], a document that is no policy a
// [*policy.Error].
func (r *reloader) first(ctx context.Context) (*attempt, error) {
	r.changed = make(chan struct{}, 1)
	a := r.load(ctx, "start")
	if a.err != nil && a.version == "" {
		return nil, &UsageError{a.err}
	}
	return a, a.err
}

// begin puts the first policy in force, in a guard that it makes.
func (r *reloader) begin(a *attempt, cfg GuardConfig) (err error) {
	if r.guard, err = NewGuard(a.policy, cfg); err != nil {
		return err
	}
	r.took(a)
	return nil
}

// load reads and compiles what the source has now.
func (r *reloader) load(ctx context.Context, trigger string) *attempt {
	a := &attempt{trigger: trigger, began: time.Now()}
	d, err := r.source.Load(ctx)
	if err != nil {
		a.err = fmt.Errorf("policy %w", err)
		return a
	}
	a.policy, a.err = policy.Parse(d.Name, d.Data, policy.ParseConfig{Files: d.Files()})
	a.version = d.Version() // now that all files that it names have been read
	return a
}

// run takes up what changes until ctx ends.
func (r *reloader) run(ctx context.Context) {
	var watch sync.WaitGroup
	watch.Go(func() { r.watch(ctx) })
	defer watch.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			r.reload(ctx, "change", false)
		case sig := <-r.asked:
			r.reload(ctx, sig.String(), true)
		}
	}
}

func (r *reloader) watch(ctx context.Context) {
	err := r.source.Watch(ctx, func() {
		select {
		case r.changed <- struct{}{}:
		default: // there is a word already that nobody has heard yet
		}
	})
	if err != nil {
		r.log.Error("the policy is not watched any more; a signal still has it loaded", "error", err)
	}
}

// reload loads, and again as long as what it loads cannot be put in force and still changes. Whoever has asked for it is told
// what came of it in any case.
func (r *reloader) reload(ctx context.Context, trigger string, asked bool) {
	for began := time.Now(); ; {
		a := r.load(ctx, trigger)
		if ctx.Err() != nil { // the guard may be closed by now
			return
		}
		if a.err == nil && a.version != r.version {
			a.err = r.guard.Replace(a.policy, r.check)
		}
		switch {
		case a.err == nil && a.version == r.version:
			r.unchanged(a, asked)
			return
		case a.err == nil:
			r.took(a)
			return
		case time.Since(began) > longestPatience || !r.changes(ctx):
			r.refuse(a, asked)
			return
		}
	}
}

// changes waits for a while for the source to change.
func (r *reloader) changes(ctx context.Context) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.changed:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// took notes that a policy has been put in force.
func (r *reloader) took(a *attempt) {
	now, rules := time.Now(), len(a.policy.Rules())
	again := r.version != ""
	r.version, r.refusal = a.version, ""
	r.mu.Lock()
	s := &r.status
	s.Warnings = warningLines(a.policy)
	s.Name, s.Version, s.InForceSince, s.Rules, s.Current = a.policy.Name(), a.shown(), now.UTC(), rules, true
	if again {
		s.Reloads++
	}
	r.mu.Unlock()
	if again { // the first is in the line that says what is guarded
		r.log.Info("policy in force", "policy", a.policy.Name(), "version", a.shown(), "rules", rules,
			"trigger", a.trigger, "took", now.Sub(a.began).Round(time.Microsecond).String())
		r.warn()
	}
}

// warn logs what is allowed in the policy in force and does not do what it says.
func (r *reloader) warn() {
	s := r.Status()
	for _, line := range s.Warnings {
		r.log.Warn("policy warning", "version", s.Version, "warning", line)
	}
}

// unchanged notes that the policy in force is what the source has.
func (r *reloader) unchanged(a *attempt, asked bool) {
	back := r.refusal != ""
	r.refusal = ""
	r.mu.Lock()
	r.status.Current = true
	r.mu.Unlock()
	if back || asked {
		r.log.Info("policy unchanged: the one in force is what there is", "policy", a.policy.Name(), "version", a.shown(),
			"trigger", a.trigger)
	}
}

// refuse notes that what the source has cannot be put in force: once for each version, or whenever somebody has asked.
func (r *reloader) refuse(a *attempt, asked bool) {
	refusal := a.version + "\n" + a.err.Error()
	if refusal == r.refusal && !asked {
		return
	}
	r.refusal = refusal
	lines := problemLines(a.err, statusProblems)
	r.mu.Lock()
	r.status.Refused++
	r.status.Current = false
	inForce := r.status.Version
	r.status.LastRefused = &Refusal{At: time.Now().UTC(), Version: a.shown(), Error: lines}
	r.mu.Unlock()
	attrs := []any{"error", oneLine(a.err), "in_force", inForce, "trigger", a.trigger}
	if a.version != "" {
		attrs = append(attrs, "refused", a.shown())
	}
	r.log.Error("policy refused: the old one stays in force", attrs...)
}

// Status returns what there is to know of the policy.
func (r *reloader) Status() PolicyStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// shown returns the version as people know it, which is the policy's own where the document is one.
func (a *attempt) shown() string {
	if a.policy != nil {
		return short(a.policy.Version())
	}
	return short(a.version)
}

func short(version string) string { return version[:min(len(version), shownVersion)] }
