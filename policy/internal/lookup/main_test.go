package lookup_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/policy/internal/lookup"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is what look-ups ask: it answers what it is set to, and counts.
type service struct {
	answer atomic.Pointer[reply]
	calls  atomic.Int64
}

type reply struct {
	value string
	found bool
	err   error
}

func serving(value string) *service {
	s := &service{}
	s.set(value)
	return s
}

func (s *service) set(value string) { s.answer.Store(&reply{value: value, found: true}) }
func (s *service) setNone()         { s.answer.Store(&reply{}) }
func (s *service) setErr(err error) { s.answer.Store(&reply{err: err}) }
func (s *service) ask(context.Context) (string, bool, error) {
	s.calls.Add(1)
	r := s.answer.Load()
	return r.value, r.found, r.err
}

// The three answers of a cache, as the tests compare them.
func answer(value string, ok, failed bool) lookup.Answer {
	return lookup.Answer{Value: value, OK: ok, Failed: failed}
}

func found(value string) lookup.Answer { return lookup.Answer{Value: value, OK: true} }

var (
	none   = lookup.Answer{}
	failed = lookup.Answer{Failed: true}
)
