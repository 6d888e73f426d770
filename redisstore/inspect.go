package redisstore

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// Reset implements [headgate.Resetter].
func (v *view) Reset(ctx context.Context, slot, key string) error {
	state := v.s.names.name(keyState, slot, key)
	keys := []string{state, v.s.names.another(state, keyLockout), v.s.names.another(state, keyHolders), v.s.names.another(state, keyGone)}
	_, err := v.runRaw(ctx, v.s.scripts.reset, key, &raw{keys: keys})
	return v.s.fail(err)
}

// runRaw runs a script that is given its keys and argument as they are.
func (v *view) runRaw(ctx context.Context, script *script, key string, r *raw) (string, *headgate.Error) {
	if err := v.s.lane(key).barred(); err != nil {
		return "", err
	}
	o, wall, err := v.begin(ctx, script)
	if err != nil {
		return "", err
	}
	if o.raw = r; r.arg == nil {
		r.arg = putUint([]byte{boolByte(o.timed)}, uint64(o.now), 8)
	}
	if err := v.s.run(ctx, v.s.lane(key), o, wall); err != nil {
		return "", err
	}
	reply := o.reply
	v.s.free(o)
	return reply, nil
}

// Inspect implements [headgate.Inspector].
func (v *view) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	state := v.s.names.name(keyState, slot, key)
	keys := []string{state, v.s.names.another(state, keyLockout), v.s.names.another(state, keyHolders)}
	reply, err := v.runRaw(ctx, v.s.scripts.inspect, key, &raw{keys: keys})
	if err != nil {
		return headgate.Inspection{}, v.s.fail(err)
	}
	in, ok := readInspection(reply)
	if !ok {
		return headgate.Inspection{}, v.s.fail(badReply())
	}
	return in, nil
}

func readInspection(reply string) (in headgate.Inspection, ok bool) {
	if len(reply) < 18 {
		return in, false
	}
	now, rest := replyTime(reply), reply[8:]
	state, rest, ok1 := cutCounted(rest)
	lock, rest, ok2 := cutCounted(rest)
	if !ok1 || !ok2 || len(rest) != 6 {
		return in, false
	}
	if knownFormat(state) {
		in.Found = true
		var idle int64
		in.Algorithm, in.Used, idle = used(state, now, getUint(rest, 6))
		in.IdleAt = time.UnixMicro(idle)
	}
	if len(lock) == lockLength && lock[0] == formatLockout {
		in.Found = true
		until, length := getInt(lock[13:]), getUint(lock[20:], 7)
		if length > 0 && until > now {
			in.LockedUntil = time.UnixMicro(until)
		}
	}
	return in, true
}

const lockLength = 41

// cutCounted cuts off a text that has its length before it.
func cutCounted(s string) (text, rest string, ok bool) {
	if len(s) < 2 {
		return "", "", false
	}
	n := int(getUint(s, 2))
	if s = s[2:]; n > len(s) {
		return "", "", false
	}
	return s[:n], s[n:], true
}

// knownFormat tells whether a state is of a format and a length that the scripts know.
func knownFormat(state string) bool {
	if state == "" {
		return false
	}
	if state[0] == formatLog {
		return len(state) >= 8 && (len(state)-8)%7 == 0
	}
	return lengthOf(state) == len(state)
}

// used reads how much is charged in a state at a time, and when it will be as if never used.
func used(state string, now, live int64) (alg headgate.Algorithm, units, idle int64) {
	switch state[0] {
	case formatWholeTokens:
		units, idle = meter{getUint(state[1:], 7), 0, 1, getInt(state[13:]), 0}.used(now)
		return headgate.AlgTokenBucket, min(units, getUint(state[8:], 5)), idle
	case formatTokens:
		units, idle = paced(state, getInt(state[27:]), getUint(state[34:], 7)).used(now)
		return headgate.AlgTokenBucket, min(units, getUint(state[22:], 5)), idle
	case formatQueue:
		units, idle = queueUsed(state, now)
		return headgate.AlgLeakyBucket, units, idle
	case formatFixed:
		if idle = getInt(state[15:]); idle > now {
			units = getUint(state[22:], 5)
		}
		return headgate.AlgFixedWindow, units, idle
	case formatLog:
		units, idle = logUsed(state, now)
		return headgate.AlgSlidingLog, units, idle
	case formatCells:
		units, idle = cellsUsed(state, now)
		return headgate.AlgSlidingWindow, units, idle
	}
	return headgate.AlgConcurrency, live, max(getInt(state[1:]), getInt(state[8:]))
}

// meter is a bucket that will be full, or a queue that will be empty, at a time and a fraction, at a pace.
type meter struct{ whole, rem, den, at, frac int64 }

// paced is the meter of a state that has its pace as a fraction.
func paced(state string, at, frac int64) meter {
	return meter{getUint(state[1:], 7), getUint(state[8:], 7), getUint(state[15:], 7), at, frac}
}

func (m meter) used(now int64) (units, idle int64) {
	idle = m.at
	if m.frac > 0 {
		idle++
	}
	if ahead := m.at - now; ahead >= 0 {
		units = algo.Units(m.whole, m.rem, m.den, ahead, m.frac)
	}
	return units, idle
}

// queueUsed reads a queue. After a step of the clock it is no longer than its limit can leave it.
func queueUsed(state string, now int64) (units, idle int64) {
	capacity, wait, last := getUint(state[22:], 5), getUint(state[27:], 7)-1, getUint(state[48:], 7)
	m := paced(state, getInt(state[34:])+last, getUint(state[41:], 7))
	units, idle = m.used(now)
	switch {
	case capacity > 0:
		units = min(units, capacity)
	case m.at-now >= wait+last:
		units = algo.Units(m.whole, m.rem, m.den, wait+last, 0)
	}
	return units, idle
}

func logUsed(state string, now int64) (live, idle int64) {
	period, times := getUint(state[1:], 7), state[8:]
	if times == "" {
		return 0, now
	}
	newest := getInt(times[len(times)-7:])
	for ; times != ""; times = times[7:] {
		if getInt(times) > max(now, newest)-period {
			live++
		}
	}
	return live, newest + period
}

func cellsUsed(state string, now int64) (units, idle int64) {
	period, cells := getUint(state[1:], 7), int64(state[8])
	l, err := headgate.NewSlidingWindow(headgate.MaxCount, micros(period), cells)
	var s algo.Stored
	if err != nil || !readStored(l, state, &s) {
		return 0, now
	}
	newest := s.At
	seen := algo.See(nil, l, now, &s)
	return seen.Used(), newest + (cells+1)*(period/cells)
}
