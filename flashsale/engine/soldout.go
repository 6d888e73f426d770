package engine

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Sold out is cheap: once a sku has refused a call as sold out, an instance answers that in the Stock's place. The hard part is not to
// be wrong: the retry of a win must stay a win on every instance, nothing may stay unsold for it, and what comes back is sold within 100 ms.
//
// # The lull
//
// A memory of "sold out" that is some milliseconds old tells an untruth about those who were given a unit meanwhile elsewhere. So the Stock
// promises that there are none: a look ([flashsale.Stock.Lull]) says who is known, by marks of rids and users, and for the next 50 ms nobody
// else is given more than Above units. Units that come back in a lull wait for its end, and no lull is prolonged while some wait. Within
// the lull a call for more than Above units, of a rid and a user without marks, is answered as T0 would answer it at that very
// moment, without a call, a lock or an allocation. Whoever has a mark always goes to the Stock. They are those who hold, have bought or have
// tried, at most two for each reservation of the epoch; two names with one mark cost a call and nothing else.
//
// A lull is counted from before the look was sent, by Config.Now, and by the Stock's clock from when it was made: what the instance
// believes ends first, unless the clock of the Stock jumps ahead meanwhile. The moment that counts for a call is that of its coming. One
// that comes after the end of the lull waits for a look: that one began after it came, or its lull was not over then, and either is its
// moment.
//
// # The look
//
// There is one at a time for each sku, in a goroutine that ends with it, and none while nobody asks: a call that comes 35 ms after the last
// look began starts one, and is answered out of what there is. So no call waits, if the Stock answers within 15 ms. A look reads the
// marks that it does not have yet, the first one all of them, by pages; after a loss, which it notices by the last mark that it has, again all.
//
// # When units come back
//
// The lull ends at most 50 ms after that. The first call behind it starts a look, which finds units available, and lets four times
// as many calls through as there are units that they can have. The others wait for the next look, 35 ms after the one before, and those
// that have met four of them are told CodeBusy: "sold out" is said only where it is true. Each look lets new ones through, whatever became of those
// before them, so nothing stays unsold while somebody asks. Quantities are told apart by themselves: with one unit left a call for two is
// answered from memory, and one for one is let through.
//
// # When something fails
//
//   - The Stock does not answer: nothing is answered that is older than the lull, 50 ms. Of those who wait for a look that fails, after one
//     repetition, one makes its own call and the others get the error of the look. After three such looks, or one error that asking again
//     does not cure, the memory is gone, every call goes to the Stock, and a second later "sold out" can be learnt anew.
//   - Paused, draining, closed, ended: the look says so, and calls go to the Stock, which says it better. Until then it is sold out, which it was.
//   - Another epoch: what is remembered of the last one counts for nothing, since a call brings the epoch that SQL has. The look reads the
//     new marks. A rebuild takes longer than the 50 ms of a lull of the epoch before.
//   - A top-up is units that come back; a withdrawal needs nothing.
//
// What is remembered is bounded: flashsale.MaxMarks marks over all skus, for at most 128 MB, and 1,000 skus. A sku that is not asked
// for any more gives way after a minute; where there is no room, calls go to the Stock.
const (
	// glanceEvery is how long after one look began the next begins while calls come.
	glanceEvery = 35 * time.Millisecond
	// glanceTime bounds a look, and with it how long a call waits for one.
	glanceTime = 2 * time.Second
	// glancePage is how many marks one call of the Stock brings.
	glancePage = 20_000
	// herd is how many calls are let through for each unit that has come back, by one look.
	herd = 4
	// maxGlances is how many looks a call waits for.
	maxGlances = 4
	// oldest is more than a call can have waited: one that came so long before the end of a lull came by a clock that has gone back.
	oldest = (maxGlances + 1) * glanceTime
	// maxHerd bounds the calls that wait for looks, of all skus; more are busy.
	maxHerd = 20_000
	// maxFailed is after how many failed looks there is no memory for restLooks.
	maxFailed = 3
	restLooks = time.Second
	// maxMemories bounds the skus; one is idle that nobody has looked at for idleMemory.
	maxMemories = 1000
	idleMemory  = time.Minute
)

// soldOut is what an instance remembers of all skus.
type soldOut struct {
	waiting atomic.Int64
	marks   atomic.Int64
	mu      sync.Mutex // for changes of the map, which is replaced
	of      atomic.Pointer[map[flashsale.Key]*memory]
}

// memory is what is remembered of one sku.
type memory struct {
	key           flashsale.Key
	refused, busy *flashsale.Error // shared by all answers
	calm          atomic.Pointer[calm]

	mu   sync.Mutex
	look *glance   // under way; nil: there is none
	rest time.Time // until then there is nothing to be learnt
	last time.Time // when the last look was asked for
	gone bool      // it has given way

	// Of the look under way alone, and under mu while there is none.
	epoch  int64
	marks  *marks
	count  int64 // as the Stock counts marks, and the last of them
	mark   uint64
	failed int
}

// calm is what a look has found.
type calm struct {
	epoch int64
	marks *marks
	// Until then nobody without a mark gets more than above units.
	until time.Time
	above int64
	// next is when the next look may begin.
	next time.Time
	// left is how many calls may still be let through, for what is available.
	left atomic.Int64
}

// verdict is what the memory says to a call.
type verdict uint8

const (
	askStock verdict = iota // nothing: the Stock is to be asked
	isSoldOut
	isCrowded // there are units, and more calls than may ask for them
)

func (o *soldOut) get(key flashsale.Key) *memory {
	if of := o.of.Load(); of != nil {
		return (*of)[key]
	}
	return nil
}

// recall says what is remembered that a call can be answered by, after waiting for a look if need be. An error is that of the look, or
// of a caller who leaves.
func (e *Engine) recall(ctx context.Context, m *memory, epoch int64, ask *flashsale.Ask) (verdict, error) {
	came := e.cfg.Now()
	for range maxGlances {
		v, l := e.judge(m, epoch, ask, came)
		if l == nil {
			return v, nil
		}
		if e.soldOut.waiting.Add(1) > maxHerd {
			e.soldOut.waiting.Add(-1)
			return isCrowded, nil
		}
		err := l.wait(ctx)
		e.soldOut.waiting.Add(-1)
		if err != nil {
			return askStock, err
		}
		if l.err != nil {
			return askStock, l.share()
		}
	}
	return isCrowded, nil
}

// judge decides a call by what a look has found, or says for which look it has to wait.
func (e *Engine) judge(m *memory, epoch int64, ask *flashsale.Ask, came time.Time) (verdict, *glance) {
	switch c := m.calm.Load(); {
	case c == nil:
		return askStock, m.underWay()
	case c.epoch != epoch || c.marks.has(flashsale.Mark(ask.RID)) || c.marks.has(flashsale.Mark(ask.User)):
		return askStock, nil
	case !came.Before(c.until) || came.Before(c.until.Add(-oldest)):
		return askStock, e.glanceAt(m, time.Time{})
	case ask.Quantity > c.above:
		if !came.Before(c.next) {
			e.glanceAt(m, time.Time{})
		}
		return isSoldOut, nil
	case c.left.Add(-1) >= 0:
		return askStock, nil
	default:
		return askStock, e.glanceAt(m, c.next)
	}
}

// recalled makes an answer of what is remembered.
func (e *Engine) recalled(ctx context.Context, m *memory, ask *flashsale.Ask, v verdict, err error) (ReserveAnswer, error) {
	switch {
	case err != nil:
		return faulty(err), err
	case v == isCrowded:
		return ReserveAnswer{RetryAfter: jittered(retryAfter)}, m.busy
	case ask.OnlyKnown: // that comes before sold out
		ask.Body = flashsale.BodyHash(m.key, ask.User, ask.Quantity)
		return e.expired(ctx, m.key, ask)
	}
	return ReserveAnswer{}, m.refused
}

// noteSoldOut is told that the Stock has refused a call as sold out, so that the next ones need not ask.
func (e *Engine) noteSoldOut(key flashsale.Key) {
	if e.cfg.AskAlways {
		return
	}
	m := e.soldOut.get(key)
	if m == nil {
		if m = e.soldOut.open(key); m == nil {
			return
		}
	}
	if c := m.calm.Load(); c == nil || !e.cfg.Now().Before(c.next) {
		e.glanceAt(m, time.Time{})
	}
}

// open makes a memory of a sku, if there is room.
func (o *soldOut) open(key flashsale.Key) *memory {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.get(key); m != nil {
		return m
	}
	of := map[flashsale.Key]*memory{}
	if old := o.of.Load(); old != nil {
		of = maps.Clone(*old)
	}
	o.dropIdle(of)
	if len(of) >= maxMemories || o.marks.Load() >= flashsale.MaxMarks {
		return nil
	}
	m := &memory{
		key: key, last: time.Now(),
		refused: &flashsale.Error{Code: flashsale.CodeSoldOut, Message: key.String() + ": there is nothing left now; units that are not paid come back"},
		busy:    &flashsale.Error{Code: flashsale.CodeBusy, Message: key.String() + ": too many are waiting; ask again"},
	}
	of[key] = m
	o.of.Store(&of)
	return m
}

// dropIdle takes out what nobody has looked at for long.
func (o *soldOut) dropIdle(of map[flashsale.Key]*memory) {
	for key, m := range of {
		m.mu.Lock()
		if m.look == nil && time.Since(m.last) > idleMemory {
			m.gone = true
			o.release(m)
			delete(of, key)
		}
		m.mu.Unlock()
	}
}

// release forgets what is remembered of a sku, but for the sku.
func (o *soldOut) release(m *memory) {
	m.calm.Store(nil)
	if m.marks != nil {
		o.marks.Add(-int64(m.marks.n))
	}
	m.marks, m.epoch = nil, 0
}
