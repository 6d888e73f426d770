package redisstore

import (
	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// The flags of a charge in the reply of take.lua.
const (
	replyPasses  = 1
	replyState   = 2
	replyCharged = 4
	replyShut    = 8
	replyAmount  = 16
	replySkew    = 32
	replyForeign = 64
)

// headLength is that of what every reply begins with: the time and how many states were of an unknown format.
const headLength = 10

func replyTime(reply string) int64   { return getUint(reply, 8) }
func unknownStates(reply string) int { return int(getUint(reply[8:], 2)) }
func badReply() *headgate.Error {
	return newError(headgate.CodeInternal, nil, "the reply of a script cannot be read; are the keys of this namespace another program's?")
}

// part is the answer to one charge, as the script gave it.
type part struct {
	flags  byte
	state  string // before the charge; "" if there was none
	shut   int64  // µs until a lockout ends
	amount int64  // that a settling charge took
}

// lengthOf returns the length of the state, or of what stands for it, that begins a text; 0 if it is none.
func lengthOf(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case formatWholeTokens:
		return 20
	case formatTokens:
		return 41
	case formatFixed:
		return 27
	case formatLog:
		return 17
	case formatCells:
		if len(s) >= 17 {
			return 17 + 6*int(s[16])
		}
	case formatQueue:
		return 55
	case formatHolders:
		return 15
	}
	return 0
}

// readPart reads the answer to one charge and returns where the next begins.
func readPart(reply string, at int, p *part) (next int, ok bool) {
	if at >= len(reply) {
		return 0, false
	}
	*p = part{flags: reply[at]}
	at++
	if p.flags&replyState != 0 {
		n := lengthOf(reply[at:])
		if n == 0 || at+n > len(reply) {
			return 0, false
		}
		p.state, at = reply[at:at+n], at+n
	}
	if p.flags&replyShut != 0 {
		if at+7 > len(reply) {
			return 0, false
		}
		p.shut, at = getUint(reply[at:], 7), at+7
	}
	if p.flags&replyAmount != 0 {
		if at+6 > len(reply) {
			return 0, false
		}
		p.amount, at = getUint(reply[at:], 6), at+6
	}
	return at, true
}

// skip returns where the answers to n charges end.
func skip(reply string, at, n int) (int, *headgate.Error) {
	var p part
	for range n {
		next, ok := readPart(reply, at, &p)
		if !ok {
			return 0, badReply()
		}
		at = next
	}
	return at, nil
}

// readStored reads a state that the limit judged last. It serves the limits whose state is in numbers alone.
func readStored(l headgate.Limit, state string, s *algo.Stored) bool {
	switch l := l.(type) {
	case headgate.TokenBucket:
		switch state[0] {
		case formatWholeTokens:
			s.At, s.Extra = getInt(state[13:]), 0
			return true
		case formatTokens:
			s.At, s.Extra = getInt(state[27:]), getUint(state[34:], 7)
			return true
		}
	case headgate.FixedWindow:
		if state[0] == formatFixed {
			s.At, s.Extra, s.Count = getInt(state[8:]), getInt(state[15:]), getUint(state[22:], 5)
			return true
		}
	case headgate.LeakyBucket:
		if state[0] == formatQueue {
			s.Extra, s.Count = getUint(state[41:], 7), getUint(state[48:], 7)
			s.At = getInt(state[34:]) + s.Count
			return true
		}
	case headgate.SlidingWindow:
		if state[0] == formatCells && int64(state[16]) <= l.Cells()+1 {
			n := int(state[16])
			if n == 0 {
				return true // no cell has a count
			}
			s.At, s.Series = getInt(state[9:]), make([]int64, l.Cells()+1)
			for i := range n {
				s.Series[i] = getUint(state[17+6*i:], 6)
			}
			return true
		}
	}
	return false
}
