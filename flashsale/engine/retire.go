package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/headgate-io/headgate/flashsale"
)

// retireSKUs bounds the skus whose removal one pass tries.
const retireSKUs = 16

// retire removes what the Stock still has of skus that were closed long ago: who has bought what, for one. SQL notes it afterwards, so that
// a crash between the two repeats a removal of nothing. The next pass goes on with others: those that fail hide none.
func (e *Engine) retire(ctx context.Context) (int, error) {
	skus, err := e.orders.Retirable(ctx, e.care.retired.get(), retireSKUs)
	if err != nil {
		return 0, err
	}
	next := flashsale.Key{}
	if len(skus) == retireSKUs {
		next = skus[retireSKUs-1].Key
	}
	e.care.retired.set(next)
	var did atomic.Int64
	err = e.allOf(len(skus), e.cfg.Paying.Parallel, "removing what was closed long ago", func(i int) error {
		done, err := e.retireSKU(ctx, &skus[i])
		if done {
			did.Add(1)
		}
		return err
	})
	return int(did.Load()), err
}

// retireSKU removes what there is of one. Whoever rebuilds it meanwhile has another epoch: the Stock's is not removed then, or SQL does
// not note it, and the watcher loads it once more.
func (e *Engine) retireSKU(ctx context.Context, s *flashsale.SKUState) (bool, error) {
	v, err := e.stock.View(ctx, s.Key)
	if err != nil {
		return false, err
	}
	err = e.stock.Remove(ctx, s.Key, max(v.Epoch, s.Epoch))
	if err == nil {
		err = e.orders.Retire(ctx, s.Key, s.Epoch)
	}
	if code := flashsale.CodeOf(err); isEpoch(err) || code == flashsale.CodeInvalidState {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := e.readSKU(ctx, s.Key); err != nil {
		e.log.Debug("a retired sku is not known as such yet", slog.String("sku", s.Key.String()), slog.Any("error", err))
	}
	e.log.Info("the stock of a sku that was closed long ago is removed", slog.String("sku", s.Key.String()), slog.Int64("epoch", s.Epoch))
	return true, nil
}

// errRetired is why nothing of the Stock can be asked for.
var errRetired = errors.New("the stock is gone")

func retired(key flashsale.Key) error {
	return &flashsale.Error{
		Code: flashsale.CodeNotOpen, Message: key.String() + " has been closed for longer than a day; its stock is not kept any more", Err: errRetired,
	}
}

// answerOfRetired is that of T0 where there is no Stock any more. Every token of the time when there was has expired, and what became of
// it is in SQL.
func answerOfRetired(ask *flashsale.Ask) flashsale.Answer {
	if ask.OnlyKnown {
		return flashsale.Answer{Code: flashsale.CodeTokenExpired}
	}
	return flashsale.Answer{Code: flashsale.CodeNotOpen, Detail: string(flashsale.Closed)}
}

func isRetired(err error) bool { return errors.Is(err, errRetired) }
