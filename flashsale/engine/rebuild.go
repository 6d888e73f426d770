package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Bounds of a rebuild.
const (
	drainPage  = 500
	unsentPage = 500
	// raises is how often one rebuild raises SQL's epoch to come above that of the Stock.
	raises = 64
	// comparisons is how often sums are compared that others may have moved meanwhile.
	comparisons = 5
	// maxDropped is how many jobs a rebuild may lose that SQL neither decides nor refuses: more than that is not the jobs' fault.
	maxDropped = 16
)

// RebuildReport tells what a rebuild has done.
type RebuildReport struct {
	Key   flashsale.Key
	Epoch int64
	// Older are the epochs whose queues were read to their end, Jobs how many jobs were decided out of them. Refused are those among
	// them that SQL could not decide, and Dropped those that it could not even refuse: their shoppers are told to try again.
	Older                  []int64
	Jobs, Refused, Dropped int
	// Entries, Buyers and Adjusted count what was loaded, Followed the rows of the outbox that were applied after it.
	Entries, Buyers, Adjusted, Followed int
	// Available is what the Stock has now, and Below how much less than SQL that was when it was last compared: what others
	// have given back meanwhile.
	Available, Below int64
	Took             time.Duration
}

// String says it in a line.
func (r *RebuildReport) String() string {
	return fmt.Sprintf("epoch %d: %s decided, %d refused, %d dropped; %s of %s loaded, %d available", r.Epoch, counted(r.Jobs, "job", "jobs"), r.Refused, r.Dropped,
		counted(r.Entries, "entry", "entries"), counted(r.Buyers, "buyer", "buyers"), r.Available)
}

// rebuild is one rebuild under way.
type rebuild struct {
	*Engine
	key   flashsale.Key
	epoch int64
	// store is the run of the Stock before anything was loaded.
	store  string
	report RebuildReport
}

// RebuildOnce loads the keys of the Stock anew from SQL, in a new epoch, after it has had SQL decide all jobs that waited in older
// ones. Fence is that of the lease "sale/rebuild". What it does is guarded by its epoch at every step, in SQL and in the Stock, so
// that a crash at any of them, or another rebuilder that comes later or earlier, leaves a rebuild to be begun anew and nothing else.
func (e *Engine) RebuildOnce(ctx context.Context, key flashsale.Key, fence int64) (RebuildReport, error) {
	began := time.Now()
	r := &rebuild{Engine: e, key: key, report: RebuildReport{Key: key}}
	err := r.run(ctx, fence)
	r.report.Epoch, r.report.Took = r.epoch, time.Since(began)
	e.observer.Rebuilt(key.String(), r.epoch, r.report.Took, codeOf(err))
	if err != nil {
		return r.report, fmt.Errorf("the rebuild of %s at epoch %d: %w", key, r.epoch, err)
	}
	e.log.Info("the stock of a sku is loaded", slog.String("sku", key.String()), slog.Int64("epoch", r.epoch), slog.Int("jobs", r.report.Jobs),
		slog.Int("entries", r.report.Entries), slog.Int64("available", r.report.Available), slog.Duration("took", r.report.Took))
	return r.report, nil
}

func (r *rebuild) run(ctx context.Context, fence int64) error {
	// The run is read before anything is loaded: if the store starts anew meanwhile, or a replica takes its place, parts of the load are lost.
	before, err := r.stock.View(ctx, r.key)
	if err != nil {
		return err
	}
	r.store = before.Run
	if err := r.begin(ctx, fence, before.Epoch); err != nil {
		return err
	}
	if r.report.Older, err = r.stock.Point(ctx, r.key, r.epoch); err != nil {
		return err
	}
	slices.Sort(r.report.Older)
	// From here on nobody can append to an older queue, and only this rebuild's batches are decided.
	for _, older := range r.report.Older {
		if err := r.drain(ctx, older); err != nil {
			return err
		}
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	if err := r.orders.EndRebuild(ctx, r.key, r.epoch, r.store); err != nil {
		return err
	}
	r.rebuilt(r.key, r.epoch)
	if err := r.configure(ctx, r.key); err != nil {
		r.log.Debug("the settings are not in the stock yet; the watcher brings them", slog.String("sku", r.key.String()), slog.Any("error", err))
	}
	return nil
}

// begin raises the epoch in SQL. A database that was set back can be behind the Stock by several.
func (r *rebuild) begin(ctx context.Context, fence, pointer int64) (err error) {
	for range raises {
		if r.epoch, err = r.orders.BeginRebuild(ctx, r.key, rebuildLease, fence); err != nil || r.epoch > pointer {
			return err
		}
	}
	return errorf(flashsale.CodeStaleEpoch, "the stock is at epoch %d; SQL is raised towards it at every try", pointer)
}

// drain has SQL decide all jobs of an older epoch, then removes what there is of it, before the new one needs its room: all that
// matters of it is in SQL by then.
func (r *rebuild) drain(ctx context.Context, older int64) error {
	after := ""
	for {
		jobs, err := r.stock.Drain(ctx, r.key, r.epoch, older, after, drainPage)
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			return r.stock.Drop(ctx, r.key, r.epoch, older)
		}
		if err := r.decide(ctx, jobs); err != nil {
			return err
		}
		after = jobs[len(jobs)-1].ID
	}
}

// decide decides jobs in their order; a batch that cannot be decided is halved until the one job is found that is why.
func (r *rebuild) decide(ctx context.Context, jobs []flashsale.Job) error {
	_, err := r.orders.Decide(ctx, &flashsale.Batch{Key: r.key, Epoch: r.epoch, Jobs: jobs, Drain: true})
	switch {
	case err == nil:
		r.report.Jobs += len(jobs)
		return nil
	case passes(err) || ctx.Err() != nil:
		return err
	case len(jobs) == 1:
		return r.refuse(ctx, &jobs[0], err)
	}
	half := len(jobs) / 2
	if err := r.decide(ctx, jobs[:half]); err != nil {
		return err
	}
	return r.decide(ctx, jobs[half:])
}

// refuse gives a job that cannot be decided its end. If SQL cannot even do that, the job is dropped and its rid known to nobody; but
// if that is so of many, it is SQL that is broken, and nothing must be dropped for it.
func (r *rebuild) refuse(ctx context.Context, j *flashsale.Job, why error) error {
	r.log.Error("a job cannot be decided and is refused", slog.String("sku", r.key.String()), slog.String("rid", j.RID), slog.Any("error", why))
	pending := flashsale.Entry{RID: j.RID, User: j.User, Quantity: j.Quantity, State: flashsale.Pending, At: j.At, Deadline: j.Deadline}
	_, err := r.orders.Tombstone(ctx, r.key, []flashsale.Entry{pending})
	switch {
	case err == nil:
		r.report.Refused++
		return nil
	case passes(err) || ctx.Err() != nil:
		return err
	}
	if r.report.Dropped++; r.report.Dropped > maxDropped {
		return fmt.Errorf("more than %d jobs can neither be decided nor refused: %w", maxDropped, err)
	}
	return nil
}

func (r *rebuild) load(ctx context.Context) error {
	return r.orders.Snapshot(ctx, r.key, r.epoch, func(part *flashsale.LoadPart) error {
		r.report.Entries += len(part.Entries)
		r.report.Buyers += len(part.Buyers)
		r.report.Adjusted += len(part.Adjusted)
		return r.stock.Load(ctx, r.key, r.epoch, part)
	})
}

// compare brings what has happened since the snapshot to the Stock and compares the sums. Others go on giving units back, so the Stock may
// be below SQL by the time they are compared; above it, it must not begin to sell.
func (r *rebuild) compare(ctx context.Context) error {
	for range comparisons {
		if err := r.catchUp(ctx); err != nil {
			return err
		}
		v, err := r.stock.View(ctx, r.key)
		if err != nil {
			return err
		}
		books, err := r.orders.Books(ctx, r.key)
		if err != nil {
			return err
		}
		if v.Epoch != r.epoch || books.State.Epoch != r.epoch {
			return &flashsale.Error{Code: flashsale.CodeStaleEpoch, Message: "another rebuild has begun"}
		}
		if v.Run != r.store { // its sums would agree: they come with the last part
			return &flashsale.Error{Code: flashsale.CodeStaleEpoch, Message: "the store has started anew, or another has taken its place, while it was loaded"}
		}
		r.report.Available, r.report.Below = v.Available, books.State.Available()-v.Available
		if r.report.Below == 0 && v.Total == books.State.Total && v.Held == books.State.Reserved && v.Sold == books.State.Sold {
			return nil
		}
	}
	if r.report.Below < 0 {
		return errorf(flashsale.CodeInternal, "the stock was loaded with %d available, %d more than SQL has", r.report.Available, -r.report.Below)
	}
	return nil
}

// catchUp applies what the outbox has of the key. The rows are not marked: no row counts as sent while a rebuild goes on.
func (r *rebuild) catchUp(ctx context.Context) error {
	for after := int64(0); ; {
		events, err := r.orders.UnsentOf(ctx, r.key, after, unsentPage)
		if err != nil || len(events) == 0 {
			return err
		}
		if _, err := r.follow(ctx, r.key, r.epoch, events); err != nil {
			return err
		}
		r.report.Followed += len(events)
		after = events[len(events)-1].ID
	}
}

// RebuildPlan tells what a rebuild would do.
type RebuildPlan struct {
	Key flashsale.Key
	// Why says what tells of a loss, "" if nothing does and there is no need.
	Why string
	// From is the epoch of the Stock, To the one that it would get.
	From, To int64
	// Stock are its figures now, SQL those that it would get.
	Stock flashsale.StockView
	SQL   flashsale.SKUState
	// Jobs wait in the present queue to be decided first; Dead are dead letters that would be dropped.
	Jobs, Dead int64
	// Entries, Buyers and Adjusted count what would be loaded, Unsent the rows of the outbox that would be applied after it.
	Entries, Buyers, Adjusted int
	Unsent                    int64
}

// PlanRebuild is the dry run of a rebuild: it says what one would do now, and changes nothing.
func (e *Engine) PlanRebuild(ctx context.Context, key flashsale.Key) (*RebuildPlan, error) {
	s, err := e.orders.SKU(ctx, key)
	if err != nil {
		return nil, err
	}
	v, err := e.stock.View(ctx, key)
	if err != nil {
		return nil, err
	}
	p := &RebuildPlan{
		Key: key, Why: e.lossOf(s, &v), From: v.Epoch, To: max(s.Epoch, v.Epoch) + 1, Stock: v, SQL: *s,
		Jobs: v.Queue.Depth, Dead: v.Queue.Dead,
	}
	if p.Unsent, err = e.orders.UnsentCount(ctx, key); err != nil {
		return nil, err
	}
	return p, e.orders.Snapshot(ctx, key, s.Epoch, func(part *flashsale.LoadPart) error {
		p.Entries += len(part.Entries)
		p.Buyers += len(part.Buyers)
		p.Adjusted += len(part.Adjusted)
		return nil
	})
}
