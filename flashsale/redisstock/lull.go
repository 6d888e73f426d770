package redisstock

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/redis/rueidis"
)

// appendMarks appends marks as lua/head.lua has them.
func appendMarks(b []byte, names ...string) []byte {
	for _, name := range names {
		b = binary.LittleEndian.AppendUint64(b, flashsale.Mark(name))
	}
	return b
}

// Lull implements [flashsale.Stock].
func (s *Stock) Lull(ctx context.Context, key flashsale.Key, epoch int64, ask flashsale.LullAsk) (flashsale.Lull, error) {
	o, err := s.op(s.scripts.lull, key, epoch, forReserve, "a lull")
	if err != nil {
		return flashsale.Lull{}, err
	}
	last := binary.LittleEndian.AppendUint64(nil, ask.Last)
	o.args = []string{itoa(min(max(ask.After, 0), flashsale.MaxMarks)), string(last), strconv.Itoa(min(max(ask.Limit, 0), maxList))}
	all, err := s.run(ctx, o)
	if err != nil {
		return flashsale.Lull{}, err
	}
	l, ok := parseLull(all)
	if !ok {
		return flashsale.Lull{}, badReply(o.what)
	}
	return l, nil
}

func parseLull(all []rueidis.RedisMessage) (l flashsale.Lull, ok bool) {
	if len(all) != 9 {
		return l, false
	}
	var lasts int64
	ok = readInts(all, &l.From, &l.Count, nil, &l.Available, &l.Seq, &lasts, &l.Above)
	marks, err1 := all[2].ToString()
	status, err2 := all[7].ToString()
	shut, err3 := all[8].ToString()
	if !ok || err1 != nil || err2 != nil || err3 != nil || len(marks)%8 != 0 {
		return l, false
	}
	l.For = time.Duration(lasts) * time.Microsecond
	l.Marks = make([]uint64, len(marks)/8)
	for i := range l.Marks {
		l.Marks[i] = uint64(int64At(marks, 8*i))
	}
	if shut != "" {
		l.Code, l.Detail = flashsale.CodeNotOpen, map[string]string{"C": status, "N": "not_yet", "E": "ended"}[shut]
	}
	return l, true
}
