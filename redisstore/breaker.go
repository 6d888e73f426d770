package redisstore

import (
	headgate "github.com/headgate-io/headgate"
)

// newOpenError makes the error of calls that are not made. A store makes one, so that to refuse allocates nothing.
func newOpenError() *headgate.Error {
	return newError(headgate.CodeUnavailable, ErrBreakerOpen, "calls to this node of Redis have failed, and it is not asked until a probe finds it well; nothing was charged")
}

// nodeName returns the node that the lane's calls go to, as far as is known.
func (l *lane) nodeName() string {
	if name := l.node.Load(); name != nil {
		return *name
	}
	return ""
}

// barred is the error of what the breaker does not let to the lane's node, nil if it does. It allocates nothing.
func (l *lane) barred() *headgate.Error {
	if b := l.s.cfg.Breaker; b == nil || !b.Open(l.nodeName()) {
		return nil
	}
	l.s.doubt()
	return l.s.open
}

// barred is the error of a take of which one node or more is not to be asked, nil if all are.
func (s *Store) barred(charges []headgate.Charge) *headgate.Error {
	if s.cfg.Breaker == nil {
		return nil
	}
	if len(s.lanes) == 1 {
		return s.lanes[0].barred()
	}
	for i := range charges {
		if i > 0 && charges[i].Key == charges[i-1].Key {
			continue
		}
		if err := s.lane(charges[i].Key).barred(); err != nil {
			return err
		}
	}
	return nil
}

// bar answers what has waited for a node that the breaker has shut meanwhile.
func (b *batch) bar(err *headgate.Error) {
	for _, o := range b.ops {
		if o.state.CompareAndSwap(opQueued, opSent) {
			o.finish("", 0, err)
		}
	}
}
