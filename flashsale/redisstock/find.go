package redisstock

import (
	"context"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/redis/rueidis"
)

const (
	keysRes  = 3 // how many keys of head.lua it takes to see reservations
	keysUser = 4
	keysDue  = 5
)

// Find implements [flashsale.Stock].
func (s *Stock) Find(ctx context.Context, key flashsale.Key, epoch int64, rids []string) ([]flashsale.Entry, error) {
	o, err := s.op(s.scripts.find, key, epoch, keysRes, "a look-up")
	if err != nil {
		return nil, err
	}
	if err := checkCount("rids", len(rids)); err != nil {
		return nil, err
	}
	o.args = rids
	all, err := s.run(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(all) != len(rids) {
		return nil, badReply(o.what)
	}
	found := make([]flashsale.Entry, len(rids))
	for i, rid := range rids {
		raw, err := all[i].ToString()
		if err != nil {
			return nil, badReply(o.what)
		}
		if raw == "" {
			found[i] = flashsale.Entry{RID: rid}
			continue
		}
		var ok bool
		if found[i], _, ok = parseEntry(rid, raw); !ok {
			return nil, badReply(o.what)
		}
	}
	return found, nil
}

// Holds implements [flashsale.Stock].
func (s *Stock) Holds(ctx context.Context, key flashsale.Key, epoch int64, user string) ([]string, error) {
	o, err := s.op(s.scripts.holds, key, epoch, keysUser, "a look at a user")
	if err != nil {
		return nil, err
	}
	o.args = []string{user}
	all, err := s.run(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, badReply(o.what)
	}
	raw, err := all[0].ToString()
	if err != nil {
		return nil, badReply(o.what)
	}
	return parseHolds(raw), nil
}

// parseEntries reads rids, each with its value of res.
func parseEntries(all []rueidis.RedisMessage) ([]flashsale.Entry, bool) {
	pairs, ok := parsePairs(all)
	entries := make([]flashsale.Entry, 0, len(pairs))
	for _, p := range pairs {
		e, _, good := parseEntry(p[0], p[1])
		ok = ok && good
		entries = append(entries, e)
	}
	return entries, ok
}

func parsePairs(all []rueidis.RedisMessage) ([][2]string, bool) {
	pairs := make([][2]string, 0, len(all)/2)
	for i := 0; i+1 < len(all); i += 2 {
		name, err1 := all[i].ToString()
		value, err2 := all[i+1].ToString()
		if err1 != nil || err2 != nil {
			return nil, false
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs, len(all)%2 == 0
}

// parseList reads a list of ids and what belongs to them.
func parseList[T any](all []rueidis.RedisMessage, what string, parse func(id, raw string) (T, bool)) ([]T, error) {
	pairs, ok := parsePairs(all)
	list := make([]T, 0, len(pairs))
	for _, p := range pairs {
		item, good := parse(p[0], p[1])
		ok = ok && good
		list = append(list, item)
	}
	if !ok {
		return nil, badReply(what)
	}
	return list, nil
}

// dueLook is how many members of the index of deadlines one script cleans: at most 128 reservations each, for about a millisecond of
// Redis's time in all.
const dueLook = 16

// maxDue is how many due reservations one call lists at most.
const maxDue = 10_000

// Due implements [flashsale.Stock]. What it finds decided it drops from the index, in as many calls as it takes.
func (s *Stock) Due(ctx context.Context, key flashsale.Key, epoch int64, limit int) ([]flashsale.Entry, error) {
	limit = min(max(limit, 0), maxDue)
	for {
		o, err := s.op(s.scripts.due, key, epoch, keysDue, "a look for what is due")
		if err != nil {
			return nil, err
		}
		o.args = []string{strconv.Itoa(limit), strconv.Itoa(dueLook)}
		all, err := s.run(ctx, o)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, badReply(o.what)
		}
		more, err := all[0].AsInt64()
		due, ok := parseEntries(all[1:])
		if err != nil || !ok {
			return nil, badReply(o.what)
		}
		if more == 0 {
			return due, nil
		}
	}
}

// Entries implements [flashsale.Stock]. The cursor is that of HSCAN.
func (s *Stock) Entries(ctx context.Context, key flashsale.Key, epoch int64, cursor string, limit int) ([]flashsale.Entry, string, error) {
	o, err := s.op(s.scripts.entries, key, epoch, keysRes, "a page of reservations")
	if err != nil {
		return nil, "", err
	}
	if cursor == "" {
		cursor = "0"
	} else if _, err := strconv.ParseUint(cursor, 10, 64); err != nil {
		return nil, "", failf(flashsale.CodeInvalidArgument, nil, "%.64q is not a cursor of %s; begin with an empty one", cursor, key)
	}
	o.args = []string{cursor, strconv.Itoa(min(max(limit, 1), 10_000))}
	all, err := s.run(ctx, o)
	if err != nil {
		return nil, "", err
	}
	if len(all) == 0 {
		return nil, "", badReply(o.what)
	}
	next, err := all[0].ToString()
	page, ok := parseEntries(all[1:])
	if err != nil || !ok {
		return nil, "", badReply(o.what)
	}
	if next == "0" {
		next = ""
	}
	return page, next, nil
}

// Forget implements [flashsale.Stock].
func (s *Stock) Forget(ctx context.Context, key flashsale.Key, epoch int64, rids []string) (int, error) {
	o, err := s.op(s.scripts.forget, key, epoch, keysRes, "forgetting")
	if err != nil {
		return 0, err
	}
	if err := checkCount("rids", len(rids)); err != nil {
		return 0, err
	}
	o.args = append([]string{itoa(flashsale.Retention.Microseconds())}, rids...)
	var n int64
	err = s.numbers(ctx, o, &n)
	return int(n), err
}

// View implements [flashsale.Stock]. Run is the run id of the process of Redis that has the sku's keys.
func (s *Stock) View(ctx context.Context, key flashsale.Key) (flashsale.StockView, error) {
	if err := checkKey(key, 1); err != nil {
		return flashsale.StockView{}, err
	}
	for range 3 { // the pointer may move between the two calls
		epoch, err := s.pointer(ctx, key)
		if err != nil {
			return flashsale.StockView{}, err
		}
		o := &op{script: s.scripts.view, key: key, epoch: epoch, keys: s.keysOf(key, epoch, forAll), what: "the figures"}
		all, err := s.run(ctx, o)
		if flashsale.CodeOf(err) == flashsale.CodeStaleEpoch {
			continue
		}
		if err != nil {
			return flashsale.StockView{}, err
		}
		v, ok := parseView(all)
		if !ok {
			return flashsale.StockView{}, badReply(o.what)
		}
		v.Epoch = epoch
		return v, nil
	}
	return flashsale.StockView{}, failf(flashsale.CodeUnavailable, nil, "the epoch of %s changes all the time; ask again", key)
}

// pointer reads the current epoch, 0 if there is none.
func (s *Stock) pointer(ctx context.Context, key flashsale.Key) (int64, error) {
	text, err := s.command(ctx, func(ctx context.Context) rueidis.RedisResult {
		return s.client.Do(ctx, s.client.B().Get().Key(s.keysOf(key, 0, 1)[0]).Build())
	})
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil || epoch < 1 {
		return 0, failf(flashsale.CodeInternal, nil, "the pointer of %s is %.32q, which is no epoch; is there foreign data under this key?", key, text)
	}
	return epoch, nil
}

func parseView(all []rueidis.RedisMessage) (v flashsale.StockView, ok bool) {
	if len(all) < 3 {
		return v, false
	}
	now, err1 := all[0].AsInt64()
	run, err2 := all[1].ToString()
	live, err3 := all[2].AsInt64()
	if err1 != nil || err2 != nil || err3 != nil {
		return v, false
	}
	v.Now, v.Run, v.Loaded = fromMicros(now), run, live == 1
	if !v.Loaded {
		return v, true
	}
	if len(all) < 8 {
		return v, false
	}
	fields, err := all[3].ToArray()
	if err != nil || len(fields) != 13 {
		return v, false
	}
	var opens, closes, oldest int64
	ok = readInts(fields, &v.Total, &v.Available, &v.Held, &v.Sold, &v.Seq, &v.Queue.Pending, &v.Settings.Version, nil,
		&opens, &closes, &v.Settings.PurchaseLimit, &v.Settings.Rate, &v.NextRate) &&
		readInts(all[4:], &v.Queue.Depth, &v.Queue.Pulled, &v.Queue.Dead, &oldest)
	status, err := fields[7].ToString()
	v.Settings.Status, v.Settings.OpensAt, v.Settings.ClosesAt = flashsale.Status(status), fromMicros(opens), fromMicros(closes)
	if oldest != 0 {
		v.Queue.Oldest = max(time.Duration(now-oldest)*time.Microsecond, 0)
	}
	return v, ok && err == nil
}

// readInts reads numbers, but those whose place is nil.
func readInts(all []rueidis.RedisMessage, to ...*int64) bool {
	for i := range to {
		if to[i] == nil {
			continue
		}
		n, err := all[i].AsInt64()
		if err != nil {
			return false
		}
		*to[i] = n
	}
	return true
}
