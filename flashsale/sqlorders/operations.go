package sqlorders

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

const operationColumns = "id, sale, sku, kind, delta, status, rate, reason, by_whom, state, epoch, detail, created_at, changed_at"

// maxDetail bounds the detail of an operation, in bytes.
const maxDetail = 1000

// operationRow is what a row of operation is scanned into.
type operationRow struct {
	op                   flashsale.Operation
	kind, status, state  string
	createdAt, changedAt int64
}

func (r *operationRow) dest() []any {
	op := &r.op
	return []any{&op.ID, &op.Key.Sale, &op.Key.SKU, &r.kind, &op.Delta, &r.status, &op.Rate, &op.Reason, &op.By, &r.state, &op.Epoch, &op.Detail,
		&r.createdAt, &r.changedAt}
}

func (r *operationRow) result() *flashsale.Operation {
	op := r.op
	op.Kind, op.Status, op.State = flashsale.OperationKind(r.kind), flashsale.Status(r.status), flashsale.OperationState(r.state)
	op.CreatedAt, op.ChangedAt = timeAt(r.createdAt), timeAt(r.changedAt)
	return &op
}

// BeginOperation implements [flashsale.Operations].
func (o *Orders) BeginOperation(ctx context.Context, op *flashsale.Operation) (*flashsale.Operation, error) {
	want := *op
	want.Reason, want.By = text(op.Reason), text(op.By)
	if err := checkOperation(&want); err != nil {
		return nil, err
	}
	var stored *flashsale.Operation
	err := o.write(ctx, "BeginOperation", func(t *tx) error {
		sku, err := t.lockSKU(want.Key)
		if err != nil {
			return err
		}
		if stored, err = t.operation(want.ID); err != nil || stored != nil {
			if err == nil && !saysTheSame(stored, &want) {
				err = errorf(flashsale.CodeConflict, "there is an operation %q that says something else; give this one an id of its own", want.ID)
			}
			return err
		}
		stored, err = t.beginOperation(sku, &want)
		return err
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// checkOperation keeps a kind's own fields, and checks them.
func checkOperation(op *flashsale.Operation) error {
	if err := flashsale.CheckID("the id of the operation", op.ID); err != nil {
		return err
	}
	if err := checkKey(op.Key); err != nil {
		return err
	}
	if err := flashsale.CheckReason(op.Reason); err != nil {
		return err
	}
	if len(op.By) > flashsale.MaxReason {
		return invalidf("operation %s: By has %d bytes, more than %d", op.ID, len(op.By), flashsale.MaxReason)
	}
	delta, status, rate := op.Delta, op.Status, op.Rate
	op.Delta, op.Status, op.Rate = 0, "", 0
	switch op.Kind {
	case flashsale.OpTopUp, flashsale.OpWithdraw:
		op.Delta = delta
		if delta < 1 || delta > flashsale.MaxTotal {
			return invalidf("operation %s: %s by %d units; give 1 to %d", op.ID, op.Kind, delta, flashsale.MaxTotal)
		}
	case flashsale.OpStatus:
		op.Status = status
	case flashsale.OpRate:
		op.Rate = rate
		if rate < 1 || rate > flashsale.MaxRate {
			return invalidf("operation %s: a rate of %d; give 1 to %d reservations a second", op.ID, rate, flashsale.MaxRate)
		}
	case flashsale.OpRebuild:
	default:
		return invalidf("operation %s: there is no kind %.40q; give top_up, withdraw, status, rate or rebuild", op.ID, op.Kind)
	}
	return nil
}

// saysTheSame compares what the caller says, and not how far it is.
func saysTheSame(a, b *flashsale.Operation) bool {
	return a.Key == b.Key && a.Kind == b.Kind && a.Delta == b.Delta && a.Status == b.Status && a.Rate == b.Rate && a.Reason == b.Reason && a.By == b.By
}

// beginOperation stores a new operation and makes its step, with the sku locked.
func (t *tx) beginOperation(sku *flashsale.SKUState, want *flashsale.Operation) (*flashsale.Operation, error) {
	op := *want
	op.State, op.Epoch, op.Detail = flashsale.OpCommitted, sku.Epoch, ""
	op.CreatedAt, op.ChangedAt = timeAt(t.now), timeAt(t.now)
	var err error
	switch op.Kind {
	case flashsale.OpTopUp:
		err = t.topUp(sku, &op)
	case flashsale.OpWithdraw:
		op.State = flashsale.OpBegun
		if sku.Settings.Status == flashsale.Closed {
			err = errorf(flashsale.CodeInvalidState, "%s is closed; nothing is taken from it", op.Key)
		}
	case flashsale.OpStatus:
		err = t.setStatus(sku, &op)
	case flashsale.OpRate:
		err = t.setRate(sku, &op)
	}
	if err != nil {
		return nil, err
	}
	row := []any{op.ID, op.Key.Sale, op.Key.SKU, string(op.Kind), op.Delta, string(op.Status), op.Rate, op.Reason, op.By, string(op.State), op.Epoch,
		op.Detail, t.now, t.now}
	return &op, t.insert(columnsOf("operation", "id", "sale", "sku", "kind", "delta int", "status", "rate int", "reason", "by_whom", "state",
		"epoch int", "detail", "created_at int", "changed_at int"), "", [][]any{row})
}

func (t *tx) topUp(sku *flashsale.SKUState, op *flashsale.Operation) error {
	if sku.Settings.Status == flashsale.Closed {
		return errorf(flashsale.CodeInvalidState, "%s is closed; nothing is added to it", op.Key)
	}
	if op.Delta > flashsale.MaxTotal-sku.Total {
		return invalidf("operation %s: %d units and %d more are more than %d", op.ID, sku.Total, op.Delta, flashsale.MaxTotal)
	}
	return t.changeTotal(op, phaseTopUp, op.Delta)
}

func (t *tx) changeTotal(op *flashsale.Operation, phase string, by int64) error {
	if _, err := t.exec("UPDATE sale_sku SET total = total + ?, changed_at = ? WHERE sale = ? AND sku = ?", by, t.now, op.Key.Sale, op.Key.SKU); err != nil {
		return err
	}
	return t.insert(ledgerColumns(), "", [][]any{{op.ID, phase, op.Key.Sale, op.Key.SKU, op.Delta, "", t.now}})
}

func (t *tx) setStatus(sku *flashsale.SKUState, op *flashsale.Operation) error {
	was := sku.Settings.Status
	if was == op.Status {
		return errorf(flashsale.CodeInvalidState, "%s is %s already", op.Key, was)
	}
	if !was.CanBecome(op.Status) {
		return errorf(flashsale.CodeInvalidState, "%s is %s, and cannot become %.40s: %s", op.Key, was, op.Status, wayOn(was))
	}
	if op.Status == flashsale.Closed {
		if err := t.quiescent(sku); err != nil {
			return err
		}
	}
	return t.set(op, "status", string(op.Status))
}

// wayOn says what can be done with what has a status.
func wayOn(was flashsale.Status) string {
	switch was {
	case flashsale.Draft:
		return "open it first, or drop the sale"
	case flashsale.Open, flashsale.Paused:
		return "drain it first"
	case flashsale.Draining:
		return "it can only be closed now"
	}
	return "that is its end"
}

// quiescent refuses to close what the Stock does not follow yet. That nothing waits in the Stock's queue is the caller's to know.
func (t *tx) quiescent(sku *flashsale.SKUState) error {
	if sku.Rebuilding {
		return errorf(flashsale.CodeRebuilding, "%s cannot be closed while its stock is being rebuilt; ask again", sku.Key)
	}
	found, err := t.one("SELECT id FROM outbox WHERE stock_sent = 0 AND sale = ? AND sku = ? LIMIT 1", []any{sku.Key.Sale, sku.Key.SKU}, new(int64))
	if err != nil || !found {
		return err
	}
	return errorf(flashsale.CodeInvalidState, "%s cannot be closed yet: its stock has not followed everything; ask again", sku.Key)
}

func (t *tx) setRate(sku *flashsale.SKUState, op *flashsale.Operation) error {
	if sku.Settings.Status == flashsale.Closed {
		return errorf(flashsale.CodeInvalidState, "%s is closed; it has no rate", op.Key)
	}
	return t.set(op, "rate", op.Rate)
}

// set changes a setting, which has a higher version then.
func (t *tx) set(op *flashsale.Operation, column string, value any) error {
	_, err := t.exec("UPDATE sale_sku SET "+column+" = ?, settings_version = settings_version + 1, changed_at = ? WHERE sale = ? AND sku = ?",
		value, t.now, op.Key.Sale, op.Key.SKU)
	return err
}

// operation returns the row of an operation, nil if there is none. Its sku is locked, and with it all that changes it.
func (t *tx) operation(id string) (*flashsale.Operation, error) {
	var row operationRow
	found, err := t.one("SELECT "+operationColumns+" FROM operation WHERE id = ?", []any{id}, row.dest()...)
	if err != nil || !found {
		return nil, err
	}
	return row.result(), nil
}

// lockOperation locks the sku of an operation, and returns both.
func (t *tx) lockOperation(id string) (*flashsale.SKUState, *flashsale.Operation, error) {
	if err := flashsale.CheckID("the id of the operation", id); err != nil {
		return nil, nil, err
	}
	op, err := t.operation(id) // its key never changes
	switch {
	case err != nil:
		return nil, nil, err
	case op == nil:
		return nil, nil, errorf(flashsale.CodeNotFound, "there is no operation %q", id)
	}
	sku, err := t.lockSKU(op.Key)
	if err != nil {
		return nil, nil, err
	}
	op, err = t.operation(id)
	return sku, op, err
}

// CommitWithdrawal implements [flashsale.Operations]. CodeInvalidState for what is no withdrawal or was refused, and where SQL does
// not have so many units left: the Stock had units that are not there, and has to be rebuilt.
func (o *Orders) CommitWithdrawal(ctx context.Context, id string, epoch int64) (*flashsale.Operation, error) {
	var result *flashsale.Operation
	err := o.write(ctx, "CommitWithdrawal", func(t *tx) error {
		sku, op, err := t.lockOperation(id)
		result = op
		switch {
		case err != nil:
			return err
		case op.Kind != flashsale.OpWithdraw || op.State == flashsale.OpRefused:
			return errorf(flashsale.CodeInvalidState, "operation %s is %s, a %s, and cannot be committed", id, op.State, op.Kind)
		case op.State != flashsale.OpBegun:
			return nil
		case sku.Epoch != epoch:
			op.Epoch = sku.Epoch
			return t.putOperation(op)
		case op.Delta > sku.Available():
			return errorf(flashsale.CodeInvalidState, "operation %s is to withdraw %d from %s, and SQL has %d left: its stock has to be rebuilt", id, op.Delta, op.Key, sku.Available())
		}
		op.State, op.Epoch = flashsale.OpCommitted, epoch
		if err := t.changeTotal(op, phaseWithdraw, -op.Delta); err != nil {
			return err
		}
		return t.putOperation(op)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// putOperation writes how far an operation is.
func (t *tx) putOperation(op *flashsale.Operation) error {
	op.ChangedAt = timeAt(t.now)
	_, err := t.exec("UPDATE operation SET state = ?, epoch = ?, detail = ?, changed_at = ? WHERE id = ?", string(op.State), op.Epoch, op.Detail, t.now, op.ID)
	return err
}

// FinishOperation implements [flashsale.Operations]. CodeInvalidState if it cannot end so from where it is.
func (o *Orders) FinishOperation(ctx context.Context, id string, epoch int64, state flashsale.OperationState, detail string) error {
	if state != flashsale.OpDone && state != flashsale.OpRefused {
		return invalidf("operation %s cannot end as %.40q; give done or refused", id, state)
	}
	if detail = text(detail); len(detail) > maxDetail {
		detail = text(detail[:maxDetail])
	}
	return o.write(ctx, "FinishOperation", func(t *tx) error {
		sku, op, err := t.lockOperation(id)
		if err != nil || op.State == state {
			return err
		}
		if err := mayEnd(sku, op, epoch, state); err != nil {
			return err
		}
		op.State, op.Detail = state, detail
		return t.putOperation(op)
	})
}

// mayEnd says why an operation cannot end. What was refused in an epoch that is over may have been done in the next.
func mayEnd(sku *flashsale.SKUState, op *flashsale.Operation, epoch int64, state flashsale.OperationState) error {
	from := flashsale.OpCommitted
	if state == flashsale.OpRefused {
		from = flashsale.OpBegun
	}
	switch {
	case op.State != from:
		return errorf(flashsale.CodeInvalidState, "operation %s is %s and cannot become %s", op.ID, op.State, state)
	case state == flashsale.OpRefused && (op.Epoch != epoch || sku.Epoch != epoch):
		return errorf(flashsale.CodeStaleEpoch, "operation %s was refused in epoch %d, and %s is at epoch %d", op.ID, epoch, op.Key, sku.Epoch)
	}
	return nil
}

// isOpen is a condition that an operation has not ended.
const isOpen = "state IN ('begun', 'committed')"

// OpenOperations implements [flashsale.Operations].
func (o *Orders) OpenOperations(ctx context.Context, cursor string, limit int) (found []flashsale.Operation, next string, err error) {
	p := page{method: "OpenOperations", cursor: cursor, limit: limit}
	from, err := p.begin()
	if err != nil {
		return nil, "", err
	}
	later, args := from.after("created_at", "id")
	found, err = o.operations(ctx, p.method, "WHERE "+isOpen+" AND "+later+" ORDER BY created_at, id LIMIT ?", append(args, limit)...)
	if err == nil && len(found) == limit {
		last := &found[len(found)-1]
		next = position{at: micros(last.CreatedAt), id: last.ID}.cursor()
	}
	return found, next, err
}

// OpenCount implements [flashsale.Operations].
func (o *Orders) OpenCount(ctx context.Context, key flashsale.Key) (n int64, err error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	err = o.read(ctx, "OpenCount", func(t *tx) error {
		_, err := t.one("SELECT COUNT(*) FROM operation WHERE "+isOpen+" AND sale = ? AND sku = ?", []any{key.Sale, key.SKU}, &n)
		return err
	})
	return n, err
}

// OperationsOf implements [flashsale.Operations].
func (o *Orders) OperationsOf(ctx context.Context, key flashsale.Key, limit int) ([]flashsale.Operation, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return o.operations(ctx, "OperationsOf", "WHERE sale = ? AND sku = ? ORDER BY created_at DESC, id DESC LIMIT ?", key.Sale, key.SKU, bounded(limit))
}

func (o *Orders) operations(ctx context.Context, method, where string, args ...any) ([]flashsale.Operation, error) {
	var all []flashsale.Operation
	err := o.read(ctx, method, func(t *tx) error {
		return t.query("SELECT "+operationColumns+" FROM operation "+where, args, func(scan func(...any) error) error {
			var row operationRow
			if err := scan(row.dest()...); err != nil {
				return err
			}
			all = append(all, *row.result())
			return nil
		})
	})
	return all, err
}
