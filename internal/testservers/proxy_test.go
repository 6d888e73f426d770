package testservers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// echo starts a server that answers each byte with itself, and ends it with the test.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				_, _ = io.Copy(c, c) // the clients of these tests end the connection in every way
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// client connects to a proxy; the connection ends with the test.
func client(t *testing.T, p *Proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp4", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// ask sends a text and returns what came within a time, and how long it took.
func ask(t *testing.T, c *net.TCPConn, text string, within time.Duration) (answer string, took time.Duration, err error) {
	t.Helper()
	start := time.Now()
	if err := c.SetDeadline(start.Add(within)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		return "", 0, err
	}
	b := make([]byte, len(text))
	n, err := io.ReadFull(c, b)
	return string(b[:n]), time.Since(start), err
}

func set(t *testing.T, p *Proxy, f Fault) {
	t.Helper()
	if err := p.Set(f); err != nil {
		t.Fatal(err)
	}
}

func mustAnswer(t *testing.T, c *net.TCPConn, text string) (took time.Duration) {
	t.Helper()
	got, took, err := ask(t, c, text, startTimeout)
	if err != nil || got != text {
		t.Fatalf("asked %q, got %q, %v", text, got, err)
	}
	return took
}

func mustBeSilent(t *testing.T, c *net.TCPConn, text string) {
	t.Helper()
	got, _, err := ask(t, c, text, 100*time.Millisecond)
	if got != "" || !errors.Is(err, syscall.ETIMEDOUT) && !isTimeout(err) {
		t.Fatalf("got %q, %v; nothing was to come", got, err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	c := client(t, p)
	mustAnswer(t, c, "hello")
	mustAnswer(t, c, strings.Repeat("long", 1<<18))
	if n := p.Links(); n != 1 {
		t.Errorf("%d links", n)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d, %v", n, err)
	}
	p.Close()
	p.Close()
	if err := p.Heal(); err == nil {
		t.Error("a closed proxy was healed")
	}
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	c := client(t, p)
	for name, tc := range map[string]struct {
		fault     Fault
		least     time.Duration
		mostDrawn time.Duration
	}{
		"up":     {Fault{Up: Delay{Min: 60 * time.Millisecond}}, 60 * time.Millisecond, 60 * time.Millisecond},
		"down":   {Fault{Down: Delay{Min: 70 * time.Millisecond}}, 70 * time.Millisecond, 70 * time.Millisecond},
		"both":   {Fault{Up: Delay{Min: 30 * time.Millisecond}, Down: Delay{Min: 40 * time.Millisecond}}, 70 * time.Millisecond, 70 * time.Millisecond},
		"random": {Fault{Down: Delay{Min: 20 * time.Millisecond, Max: 50 * time.Millisecond}}, 20 * time.Millisecond, 50 * time.Millisecond},
	} {
		set(t, p, tc.fault)
		if took := mustAnswer(t, c, name); took < tc.least {
			t.Errorf("%s: %s, which is too soon", name, took)
		}
		for range 100 {
			if d := tc.fault.Up.draw() + tc.fault.Down.draw(); d < tc.least || d > tc.mostDrawn {
				t.Errorf("%s: drew %s", name, d)
			}
		}
	}
}

// TestProxyDelayIsNoQueue: two questions that follow each other closely are late by the delay, not by two.
func TestProxyDelayIsNoQueue(t *testing.T) {
	t.Parallel()
	const late = 300 * time.Millisecond
	p := NewProxy(t, echo(t))
	c := client(t, p)
	mustAnswer(t, c, "ready")
	set(t, p, Fault{Up: Delay{Min: late}})
	for tries := 10; ; tries-- {
		arrived := fourAnswers(t, c, late/6)
		last := arrived[3]
		if last < late {
			t.Errorf("arrived after %v", arrived)
		}
		if last <= 3*late { // one after the other it would be more than 4
			return
		}
		if tries == 1 { // a machine that stands still adds to it now and then, but not each time
			t.Fatalf("arrived after %v", arrived)
		}
	}
}

// fourAnswers asks four times, every so often, and returns after what time the answers have come.
func fourAnswers(t *testing.T, c *net.TCPConn, every time.Duration) (arrived []time.Duration) {
	t.Helper()
	start := time.Now()
	if err := c.SetDeadline(start.Add(startTimeout)); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range 4 {
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	for range 4 {
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		arrived = append(arrived, time.Since(start))
	}
	return arrived
}

// TestProxyDropsAndDeliversLate: nothing passes, on connections old and new, and comes when the fault is over.
func TestProxyDropsAndDeliversLate(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	old := client(t, p)
	mustAnswer(t, old, "before")
	set(t, p, Fault{Drop: true})
	mustBeSilent(t, old, "late")
	young := client(t, p)
	mustBeSilent(t, young, "later")
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	for c, want := range map[*net.TCPConn]string{old: "late", young: "later"} {
		if err := c.SetDeadline(time.Now().Add(startTimeout)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(want))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
			t.Errorf("after it: %q, %v", b, err)
		}
		mustAnswer(t, c, "again")
	}
}

func TestProxyRefusesAndListensAgain(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	c := client(t, p)
	mustAnswer(t, c, "before")
	for range 3 {
		set(t, p, Fault{Refuse: true})
		if _, _, err := ask(t, c, "x", startTimeout); err == nil || isTimeout(err) {
			t.Errorf("a connection that stood: %v", err)
		}
		if _, err := net.Dial("tcp4", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a new connection: %v", err)
		}
		if err := p.Heal(); err != nil {
			t.Fatal(err)
		}
		c = client(t, p)
		mustAnswer(t, c, "after")
	}
}

func TestProxyCutsMidAnswer(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	c := client(t, p)
	mustAnswer(t, c, "these are not counted")
	set(t, p, Fault{CutAfter: 7})
	mustAnswer(t, c, "four")
	if got, _, err := ask(t, c, "four", startTimeout); got != "fou" || err == nil || isTimeout(err) {
		t.Errorf("cut after 7: %q, %v", got, err)
	}
	again := client(t, p) // each connection has its own count
	mustAnswer(t, again, "four")
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, again, "a long one")
	p.Cut()
	if got, _, err := ask(t, again, "x", startTimeout); err == nil || isTimeout(err) {
		t.Errorf("after a cut: %q, %v", got, err)
	}
	if err := pollFor(startTimeout, func() error {
		if n := p.Links(); n != 0 {
			return fmt.Errorf("%d links stand", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestProxyToNobody: a server that is not there is a connection that ends.
func TestProxyToNobody(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, loopback(reservePort(t)))
	if got, _, err := ask(t, client(t, p), "x", startTimeout); err == nil || isTimeout(err) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestProxyUnderChange: faults come and go while clients speak, from several goroutines; run it with the race detector.
func TestProxyUnderChange(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				c, err := net.DialTimeout("tcp4", p.Addr(), time.Second)
				if err != nil {
					continue
				}
				_ = c.SetDeadline(time.Now().Add(50 * time.Millisecond))
				_, _ = io.WriteString(c, "x") // whether it comes back depends on the fault of the moment
				_, _ = c.Read(make([]byte, 1))
				_ = c.Close()
			}
		})
	}
	for i := range 200 {
		set(t, p, []Fault{{}, {Drop: true}, {Refuse: true}, {CutAfter: 1}, {Up: Delay{Max: time.Millisecond}}}[i%5])
	}
	set(t, p, Fault{})
	wg.Wait()
	mustAnswer(t, client(t, p), "after all that")
}
