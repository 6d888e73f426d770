package redisstock

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/headgate-io/headgate/flashsale"
)

var _ flashsale.RefusalLog = (*Stock)(nil)

const (
	// refusalsLook is how many bytes of the log, and refusalsEach how many entries, one call looks at: for about a millisecond of Redis's
	// time.
	refusalsLook = 400 << 10
	refusalsEach = 512
)

// refusalKeys are those of the log, on one node whatever the sale:
//
//	headgate:{refusals}:log
//	headgate:{refusals}:meta
func (s *Stock) refusalKeys() []string {
	tag := s.cfg.Namespace + ":{refusals}:"
	return []string{tag + "log", tag + "meta"}
}

// AppendRefusals implements [flashsale.RefusalLog]. CodeBusy says that Redis is short of memory, which the log leaves to the stock.
func (s *Stock) AppendRefusals(ctx context.Context, entry []byte) error {
	if err := flashsale.CheckRefusalEntry(entry); err != nil {
		return err
	}
	args := []string{"", string(entry), itoa(s.cfg.MaxRefusalBytes), itoa(flashsale.RefusalsFor.Milliseconds())}
	all, err := s.refusals(ctx, s.scripts.refuse, args)
	if err != nil {
		return err
	}
	if word, _ := all[0].ToString(); word == "tight" {
		return failf(flashsale.CodeBusy, nil, "Redis is short of memory, so that the log of refusals takes none: give it more")
	}
	return nil
}

// refusals runs a script on the log.
func (s *Stock) refusals(ctx context.Context, script *rueidis.Lua, args []string) ([]rueidis.RedisMessage, error) {
	r, err := s.take(ctx, func(ctx context.Context) rueidis.RedisResult {
		args[0] = s.nowArg()
		return script.Exec(ctx, s.client, s.refusalKeys(), args)
	})
	if err != nil {
		return nil, err
	}
	all, err := r.ToArray()
	switch {
	case err != nil && s.base.Err() != nil:
		return nil, closedMeanwhile()
	case err != nil:
		return nil, callError(err)
	case len(all) == 0:
		return nil, badReply("the log of refusals")
	}
	return all, nil
}

// streamID is the form of what FindRefusals goes on at.
var streamID = regexp.MustCompile(`^[0-9]{1,18}-[0-9]{1,18}$`)

// FindRefusals implements [flashsale.RefusalLog]. It looks at some 480 KiB, or at 512 entries, in one call.
func (s *Stock) FindRefusals(ctx context.Context, q flashsale.RefusalQuery) (p flashsale.RefusalPage, err error) {
	if err := q.Check(); err != nil {
		return p, err
	}
	if q.Cursor != "" && !streamID.MatchString(q.Cursor) {
		return p, failf(flashsale.CodeInvalidArgument, nil, "%.64q is not a cursor of the log of refusals; begin with an empty one", q.Cursor)
	}
	args := append([]string{"", q.Cursor, strconv.Itoa(refusalsLook), strconv.Itoa(refusalsEach)}, q.Needles...)
	all, err := s.refusals(ctx, s.scripts.refused, args)
	if err != nil {
		return p, err
	}
	p, ok := parseRefusals(all)
	if !ok {
		return p, badReply("the log of refusals")
	}
	return p, nil
}

func parseRefusals(all []rueidis.RedisMessage) (p flashsale.RefusalPage, ok bool) {
	if len(all) < 4 {
		return p, false
	}
	since, err1 := all[1].AsInt64()
	cursor, err2 := all[2].ToString()
	reached, err3 := all[3].AsInt64()
	if err1 != nil || err2 != nil || err3 != nil {
		return p, false
	}
	p.Since, p.Cursor = fromMicros(since), strings.Clone(cursor)
	if reached != 0 {
		p.Reached = fromMicros(reached * 1000)
	}
	for _, m := range all[4:] {
		entry, err := m.ToString()
		if err != nil {
			return p, false
		}
		p.Entries = append(p.Entries, entry)
	}
	return p, true
}
