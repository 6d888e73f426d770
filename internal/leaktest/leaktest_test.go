package leaktest

import (
	"testing"

	"go.uber.org/goleak"
)

// tests are those of a package: how they end, and what they leave.
type tests struct {
	code  int
	leave func()
}

// Run implements goleak.TestingM.
func (s tests) Run() int {
	if s.leave != nil {
		go s.leave()
	}
	return s.code
}

func TestLeaks(t *testing.T) {
	here := goleak.IgnoreCurrent() // what the test program itself runs
	server, forever := make(chan struct{}), make(chan struct{})
	defer close(forever)
	ended := 0
	for _, c := range []struct {
		name   string
		of     tests
		shared func()
		want   int
	}{
		{"nothing is left", tests{}, func() { ended++ }, 0},
		{"the tests fail", tests{code: 3, leave: func() { <-forever }}, func() { ended++ }, 3},
		{"a client ends with its server", tests{leave: func() { <-server }}, func() { ended++; close(server) }, 0},
		{"something is left", tests{leave: func() { <-forever }}, func() { ended++ }, 1},
	} {
		if got := Main(c.of, c.shared, here); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
		here = goleak.IgnoreCurrent()
	}
	if ended != 4 {
		t.Errorf("the servers were ended %d times", ended)
	}
}
