package engine

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"github.com/headgate-io/headgate/flashsale"
)

// Command is what every operation is given.
type Command struct {
	// ID makes an operation happen once: the same command again goes on with it, and answers what became of it. 1 to 60 letters,
	// digits and . _ -
	ID string
	// Sale and SKU say of what. SKU "" is all of the sale, where the operation can be made of all.
	Sale, SKU string
	// Reason and By say why, and who wants it. Both are required.
	Reason, By string
}

// maxCommandID leaves room for the number of a sku.
const maxCommandID = flashsale.MaxID - 4

func (c *Command) check() error {
	if err := flashsale.CheckID("the id of the operation", c.ID); err != nil {
		return err
	}
	if len(c.ID) > maxCommandID {
		return errorf(flashsale.CodeInvalidArgument, "the id of the operation has %d bytes, more than %d", len(c.ID), maxCommandID)
	}
	if c.By == "" || len(c.By) > flashsale.MaxUser {
		return errorf(flashsale.CodeInvalidArgument, "say who wants the operation, in 1 to %d bytes", flashsale.MaxUser)
	}
	return flashsale.CheckReason(c.Reason)
}

// CreateSale stores a sale, with its defaults, as a draft. Its skus are loaded into the Stock by the watcher. The same sale again is
// fine.
func (e *Engine) CreateSale(ctx context.Context, s *flashsale.Sale) error {
	full := s.WithDefaults()
	if err := full.Validate(); err != nil {
		return err
	}
	if err := e.orders.CreateSale(ctx, &full); err != nil {
		return err
	}
	e.wakeWatcher()
	return nil
}

// OpenSale lets units be reserved, from the opening time on. Of a database that could lose commits nothing is opened.
func (e *Engine) OpenSale(ctx context.Context, c Command) ([]flashsale.Operation, error) {
	if err := e.orders.Durable(ctx); err != nil {
		return nil, err
	}
	return e.toStatus(ctx, &c, flashsale.Open)
}

// PauseSale stops reserving. What waits is decided, and can be paid.
func (e *Engine) PauseSale(ctx context.Context, c Command) ([]flashsale.Operation, error) {
	return e.toStatus(ctx, &c, flashsale.Paused)
}

// ResumeSale opens what is paused. What was never open is opened by it too, so it asks for no less than OpenSale.
func (e *Engine) ResumeSale(ctx context.Context, c Command) ([]flashsale.Operation, error) {
	return e.OpenSale(ctx, c)
}

// DrainSale stops reserving for good. What waits is decided, and can be paid.
func (e *Engine) DrainSale(ctx context.Context, c Command) ([]flashsale.Operation, error) {
	return e.toStatus(ctx, &c, flashsale.Draining)
}

// CloseSale closes what is draining and quiescent (see Quiescent); CodeInvalidState says what is still under way. What is reserved can
// still be paid.
func (e *Engine) CloseSale(ctx context.Context, c Command) ([]flashsale.Operation, error) {
	return e.forEach(ctx, &c, func(op *flashsale.Operation) error {
		op.Kind, op.Status = flashsale.OpStatus, flashsale.Closed
		return e.canClose(ctx, op.Key)
	})
}

// canClose looks for what is under way. SQL looks at its own part again in the step itself; the Stock cannot take anything new
// meanwhile, since it is draining.
func (e *Engine) canClose(ctx context.Context, key flashsale.Key) error {
	s, err := e.stand(ctx, key)
	if err != nil {
		return err
	}
	if s.sku.Settings.Status == flashsale.Closed {
		return nil
	}
	what := s.underWay()
	switch status := s.sku.Settings.Status; status {
	case flashsale.Draining:
	case flashsale.Draft:
		what = "it was never opened; drop the sale, or where another of its skus was opened, open this one, drain and close it"
	default:
		what = "it is " + string(status) + "; drain it first"
	}
	if what != "" {
		return &flashsale.Error{Code: flashsale.CodeInvalidState, Message: key.String() + " cannot be closed now: " + what}
	}
	return nil
}

func (e *Engine) toStatus(ctx context.Context, c *Command, status flashsale.Status) ([]flashsale.Operation, error) {
	return e.forEach(ctx, c, func(op *flashsale.Operation) error {
		op.Kind, op.Status = flashsale.OpStatus, status
		return nil
	})
}

// SetRate says how many reservations of a sku, or of each sku of the sale, SQL is given in a second at most: 1 to MaxRate. A lower
// rate takes effect in the Stock once what waits fits it.
func (e *Engine) SetRate(ctx context.Context, c Command, rate int64) ([]flashsale.Operation, error) {
	if rate < 1 || rate > flashsale.MaxRate {
		return nil, errorf(flashsale.CodeInvalidArgument, "a rate of %d; give 1 to %d reservations a second", rate, flashsale.MaxRate)
	}
	return e.forEach(ctx, &c, func(op *flashsale.Operation) error {
		op.Kind, op.Rate = flashsale.OpRate, rate
		return nil
	})
}

// TopUp adds units, 1 to MaxTotal, to one sku: in SQL, then in the Stock.
func (e *Engine) TopUp(ctx context.Context, c Command, units int64) (*flashsale.Operation, error) {
	return e.adjust(ctx, &c, flashsale.OpTopUp, units)
}

// Withdraw takes units, 1 to MaxTotal, that nobody holds from one sku: in the Stock, then in SQL. If there are not as many, the
// operation is refused as a whole.
func (e *Engine) Withdraw(ctx context.Context, c Command, units int64) (*flashsale.Operation, error) {
	return e.adjust(ctx, &c, flashsale.OpWithdraw, units)
}

func (e *Engine) adjust(ctx context.Context, c *Command, kind flashsale.OperationKind, units int64) (*flashsale.Operation, error) {
	if units < 1 || units > flashsale.MaxTotal {
		return nil, errorf(flashsale.CodeInvalidArgument, "%d units; give 1 to %d", units, flashsale.MaxTotal)
	}
	if c.SKU == "" {
		return nil, errorf(flashsale.CodeInvalidArgument, "say which sku of %s gets or gives the units", c.Sale)
	}
	ops, err := e.forEach(ctx, c, func(op *flashsale.Operation) error {
		op.Kind, op.Delta = kind, units
		return nil
	})
	if len(ops) == 0 {
		return nil, err
	}
	return &ops[0], err
}

// forEach begins an operation for each sku that the command is for and takes it as far as it goes now; what is left to do is the
// sweeper's. The operations come with an error if some could not be begun; the same command again goes on.
func (e *Engine) forEach(ctx context.Context, c *Command, say func(op *flashsale.Operation) error) ([]flashsale.Operation, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	wanted, err := e.operationsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	var done []flashsale.Operation
	var errs []error
	for i := range wanted {
		op, err := e.begin(ctx, &wanted[i], say)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ended, err := e.finish(ctx, op)
		if err != nil {
			e.log.Info("an operation has begun and is finished by the sweeper", slog.String("operation", op.ID), slog.String("sku", op.Key.String()), slog.Any("error", err))
			ended = op
		}
		done = append(done, *ended)
	}
	return done, errors.Join(errs...)
}

func (e *Engine) begin(ctx context.Context, op *flashsale.Operation, say func(op *flashsale.Operation) error) (*flashsale.Operation, error) {
	if err := say(op); err != nil {
		return nil, err
	}
	begun, err := e.orders.BeginOperation(ctx, op)
	if err != nil {
		return nil, err
	}
	e.log.Info("an operation", slog.String("operation", op.ID), slog.String("sku", op.Key.String()), slog.String("kind", string(op.Kind)),
		slog.String("state", string(begun.State)), slog.String("by", op.By), slog.String("reason", op.Reason))
	return begun, nil
}

// operationsOf returns an operation for each sku. Those of a whole sale have the id of the command and the number of the sku, which
// never changes.
func (e *Engine) operationsOf(ctx context.Context, c *Command) ([]flashsale.Operation, error) {
	one := flashsale.Operation{ID: c.ID, Key: flashsale.Key{Sale: c.Sale, SKU: c.SKU}, Reason: c.Reason, By: c.By}
	if c.SKU != "" {
		return []flashsale.Operation{one}, nil
	}
	sale, err := e.orders.Sale(ctx, c.Sale)
	if err != nil {
		return nil, err
	}
	ops := make([]flashsale.Operation, len(sale.SKUs))
	for i := range sale.SKUs {
		ops[i] = one
		ops[i].ID = c.ID + "." + strconv.Itoa(i+1)
		ops[i].Key.SKU = sale.SKUs[i].ID
	}
	return ops, nil
}

// Rebuild rebuilds the Stock of a sku, or of each sku of the sale, from SQL, whether or not a loss was noticed. If another instance is
// rebuilding, it is done after that, unless that was the rebuild that was asked for. The operation's detail says what was done.
func (e *Engine) Rebuild(ctx context.Context, c Command) ([]flashsale.Operation, error) {
	return e.forEach(ctx, &c, func(op *flashsale.Operation) error {
		op.Kind = flashsale.OpRebuild
		return nil
	})
}
