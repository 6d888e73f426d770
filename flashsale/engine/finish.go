package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/headgate-io/headgate/flashsale"
)

// openPage and openPages bound the open operations that one pass looks at; the next goes on with others.
const openPage, openPages = 1000, 4

// opsOfKeys are operations of several keys, those of a key in their order.
type opsOfKeys struct {
	keys []flashsale.Key
	of   map[flashsale.Key][]*flashsale.Operation
}

func (o *opsOfKeys) add(op *flashsale.Operation) {
	if o.of == nil {
		o.of = map[flashsale.Key][]*flashsale.Operation{}
	}
	if o.of[op.Key] == nil {
		o.keys = append(o.keys, op.Key)
	}
	o.of[op.Key] = append(o.of[op.Key], op)
}

// finishOperations takes operations further that somebody has begun and not finished, of several keys at a time, and what is to be rebuilt
// last, under one lease. A key whose store does not answer keeps only its own.
func (e *Engine) finishOperations(ctx context.Context) (int, error) {
	ops, err := e.openOperations(ctx)
	if err != nil {
		return 0, err
	}
	var steps, rebuilds opsOfKeys
	for i := range ops {
		if ops[i].Kind == flashsale.OpRebuild {
			rebuilds.add(&ops[i])
		} else {
			steps.add(&ops[i])
		}
	}
	did, err := e.finishKeys(ctx, &steps, e.cfg.Paying.Parallel, e.finish)
	n, errRebuilds := e.finishRebuilds(ctx, &rebuilds)
	return did + n, errors.Join(err, errRebuilds)
}

// openOperations lists what a pass looks at: what comes after that of the pass before, and from the beginning again at the end.
func (e *Engine) openOperations(ctx context.Context) (ops []flashsale.Operation, err error) {
	cursor := e.care.opened.get()
	for range openPages {
		page, next, err := e.orders.OpenOperations(ctx, cursor, openPage)
		if err != nil {
			return nil, err
		}
		ops = append(ops, page...)
		if cursor = next; cursor == "" {
			break
		}
	}
	e.care.opened.set(cursor)
	return ops, nil
}

// finisher takes one operation as far as it goes.
type finisher func(ctx context.Context, op *flashsale.Operation) (*flashsale.Operation, error)

func (e *Engine) finishKeys(ctx context.Context, ops *opsOfKeys, parallel int, finish finisher) (int, error) {
	var did atomic.Int64
	err := e.allOf(len(ops.keys), parallel, "finishing operations", func(i int) error {
		n, err := e.finishAll(ctx, ops.of[ops.keys[i]], finish)
		did.Add(int64(n))
		return err
	})
	return int(did.Load()), err
}

// finishRebuilds does the rebuilds that were asked for; if another instance is rebuilding, they come after that.
func (e *Engine) finishRebuilds(ctx context.Context, ops *opsOfKeys) (did int, err error) {
	if len(ops.keys) == 0 {
		return 0, nil
	}
	_, err = e.underLease(ctx, rebuildLease, func(ctx context.Context, fence int64) (err error) {
		did, err = e.finishKeys(ctx, ops, atATime, func(ctx context.Context, op *flashsale.Operation) (*flashsale.Operation, error) {
			return e.rebuildUnder(ctx, op, fence)
		})
		return err
	})
	return did, err
}

// finishAll finishes operations of a key in their order, until a store does not answer.
func (e *Engine) finishAll(ctx context.Context, ops []*flashsale.Operation, finish finisher) (did int, err error) {
	var errs []error
	for _, was := range ops {
		op, err := finish(ctx, was)
		switch {
		case isEpoch(err) || flashsale.CodeOf(err) == flashsale.CodeFenced:
		case err != nil:
			errs = append(errs, fmt.Errorf("the operation %s of %s: %w", was.ID, was.Key, err))
			if isPassing(err) {
				return did, errors.Join(errs...)
			}
		case op.State != was.State:
			did++
			e.log.Info("an operation is finished that was left open", slog.String("operation", op.ID), slog.String("state", string(op.State)))
		}
	}
	return did, errors.Join(errs...)
}

// finish takes an operation to its end. It can be repeated, by anybody, from any step.
func (e *Engine) finish(ctx context.Context, op *flashsale.Operation) (*flashsale.Operation, error) {
	switch {
	case op.State != flashsale.OpBegun && op.State != flashsale.OpCommitted:
		return op, nil
	case op.Kind == flashsale.OpWithdraw && op.State == flashsale.OpBegun:
		return e.withdraw(ctx, op)
	case op.Kind == flashsale.OpTopUp:
		return e.topUp(ctx, op)
	case op.Kind == flashsale.OpRebuild:
		return e.rebuildAsked(ctx, op)
	case op.Kind == flashsale.OpStatus || op.Kind == flashsale.OpRate:
		if err := e.configure(ctx, op.Key); err != nil {
			return nil, err
		}
	}
	return e.end(ctx, op, flashsale.OpDone, "")
}

func (e *Engine) end(ctx context.Context, op *flashsale.Operation, state flashsale.OperationState, detail string) (*flashsale.Operation, error) {
	if err := e.orders.FinishOperation(ctx, op.ID, op.Epoch, state, detail); err != nil {
		return nil, err
	}
	ended := *op
	ended.State, ended.Detail = state, detail
	return &ended, nil
}

// topUp adds units to the Stock that SQL has already. A rebuild loads them with SQL's total, and the ids of those that are not done
// with it, so that they are not added twice. So the step must not be made in an epoch whose snapshot may have found it done: the
// operation is read again, and must still be open, after the epoch was seen to be loaded.
func (e *Engine) topUp(ctx context.Context, op *flashsale.Operation) (*flashsale.Operation, error) {
	s, err := e.readSKU(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if s.Rebuilding {
		return nil, &flashsale.Error{Code: flashsale.CodeRebuilding, Message: "the stock of " + op.Key.String() + " is being loaded; the units are added to it then"}
	}
	op, err = e.orders.BeginOperation(ctx, asBegun(op))
	if err != nil || op.State != flashsale.OpCommitted {
		return op, err
	}
	if _, err := e.stock.Adjust(ctx, op.Key, s.Epoch, op.ID, op.Delta); err != nil {
		return nil, err
	}
	return e.end(ctx, op, flashsale.OpDone, "")
}

// asBegun is an operation as it was when it was begun: by which SQL knows it again.
func asBegun(op *flashsale.Operation) *flashsale.Operation {
	return &flashsale.Operation{ID: op.ID, Key: op.Key, Kind: op.Kind, Delta: op.Delta, Status: op.Status, Rate: op.Rate, Reason: op.Reason, By: op.By}
}

// withdraw takes units from the Stock, then from SQL, both in the epoch that the operation has. If that is over, what was taken in it
// is gone with it: SQL gives the operation the present one, and the step in the Stock is made again.
func (e *Engine) withdraw(ctx context.Context, op *flashsale.Operation) (*flashsale.Operation, error) {
	for op.State == flashsale.OpBegun {
		result, err := e.stock.Adjust(ctx, op.Key, op.Epoch, op.ID, -op.Delta)
		switch {
		case flashsale.CodeOf(err) == flashsale.CodeStaleEpoch:
			if err := e.epochIsOver(ctx, op); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case !result.Done:
			return e.end(ctx, op, flashsale.OpRefused, fmt.Sprintf("%s asked for, and %s available",
				counted(op.Delta, "unit was", "units were"), counted(result.Available, "is", "are")))
		}
		was := op.Epoch
		committed, err := e.orders.CommitWithdrawal(ctx, op.ID, was)
		if flashsale.CodeOf(err) == flashsale.CodeInvalidState {
			return e.cannotCommit(ctx, op, err)
		}
		if err != nil {
			return nil, err
		}
		op = committed
		if op.State == flashsale.OpBegun && op.Epoch <= was {
			return nil, &flashsale.Error{Code: flashsale.CodeInternal, Message: "the withdrawal " + op.ID + " was neither committed nor given a later epoch"}
		}
	}
	if op.State != flashsale.OpCommitted {
		return op, nil
	}
	return e.end(ctx, op, flashsale.OpDone, "")
}

// cannotCommit looks why SQL does not take the step of a withdrawal that the Stock has taken: it was refused meanwhile, or the Stock had
// units that SQL does not have. Then it has lost data, and the step is made again in what it is rebuilt to.
func (e *Engine) cannotCommit(ctx context.Context, op *flashsale.Operation, why error) (*flashsale.Operation, error) {
	now, err := e.orders.BeginOperation(ctx, asBegun(op))
	if err != nil {
		return nil, err
	}
	if now.State == flashsale.OpBegun {
		e.lost(op.Key, op.Epoch, "the stock has let go of units for a withdrawal that SQL does not have")
		return nil, why
	}
	return now, nil
}

// epochIsOver makes sure that SQL is past the epoch of a withdrawal whose step in the Stock was not made: only then does
// CommitWithdrawal not commit it. If it is not, the Stock has lost its epoch, and the watcher will see.
func (e *Engine) epochIsOver(ctx context.Context, op *flashsale.Operation) error {
	s, err := e.readSKU(ctx, op.Key)
	if err != nil {
		return err
	}
	if s.Epoch > op.Epoch {
		return nil
	}
	return &flashsale.Error{Code: flashsale.CodeRebuilding, Message: "the stock of " + op.Key.String() + " is not at SQL's epoch; the units are taken when it is loaded"}
}

// rebuildAsked does a rebuild that was asked for.
func (e *Engine) rebuildAsked(ctx context.Context, op *flashsale.Operation) (ended *flashsale.Operation, err error) {
	held, err := e.underLease(ctx, rebuildLease, func(ctx context.Context, fence int64) (err error) {
		ended, err = e.rebuildUnder(ctx, op, fence)
		return err
	})
	if err == nil && !held {
		err = errorf(flashsale.CodeFenced, "another instance is rebuilding; %s comes after it", op.Key)
	}
	return ended, err
}

// rebuildUnder rebuilds, unless there was a rebuild since it was asked for.
func (e *Engine) rebuildUnder(ctx context.Context, op *flashsale.Operation, fence int64) (*flashsale.Operation, error) {
	s, err := e.readSKU(ctx, op.Key)
	if err != nil {
		return nil, err
	}
	if s.Epoch > op.Epoch && !s.Rebuilding {
		return e.end(ctx, op, flashsale.OpDone, "there was a rebuild since")
	}
	report, err := e.RebuildOnce(ctx, op.Key, fence)
	if err != nil {
		return nil, err
	}
	return e.end(ctx, op, flashsale.OpDone, report.String())
}
