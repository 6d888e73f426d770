package resilience

import "testing"

// TestForgottenNodeIsNotOpened: a call that ends when its node has made room for others opens nothing that nobody would ever close.
func TestForgottenNodeIsNotOpened(t *testing.T) {
	t.Parallel()
	b := NewBreakers(BreakersConfig{Probe: never})
	defer b.Close()
	n := b.add("a")
	b.forget(n)
	b.opened(n, "late")
	if b.Lost() || b.Open("a") || len(b.States()) != 0 {
		t.Errorf("%+v", b.States())
	}
}

// TestOpenOfTheNodesThereAre: one node alone is found by a way of its own, and however many there are, it is the right one.
func TestOpenOfTheNodesThereAre(t *testing.T) {
	t.Parallel()
	b := NewBreakers(BreakersConfig{})
	defer b.Close()
	want := func(when string, nodes map[string]bool) {
		t.Helper()
		for name, open := range nodes {
			if b.Open(name) != open {
				t.Errorf("%s: %s is open: %v", when, name, !open)
			}
		}
	}
	b.open.Store(1) // some node is, so that they are looked at
	a := b.add("a")
	want("closed", map[string]bool{"a": false, "b": false})
	a.open.Store(true)
	want("alone", map[string]bool{"a": true, "b": false})
	second := b.add("b")
	want("two", map[string]bool{"a": true, "b": false})
	second.open.Store(true)
	want("both", map[string]bool{"a": true, "b": true, "c": false})
	b.forget(a)
	want("the first is gone", map[string]bool{"a": false, "b": true})
	a = b.add("a")
	want("and is back", map[string]bool{"a": false, "b": true})
	b.forget(second)
	want("alone again", map[string]bool{"a": false, "b": false})
	a.open.Store(true)
	b.forget(a)
	want("none", map[string]bool{"a": false, "b": false})
}
