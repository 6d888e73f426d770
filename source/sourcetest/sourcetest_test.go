package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/mutanttest"
	"github.com/headgate-io/headgate/source"
)

// cell is a source in memory that does what it should but for its fault.
type cell struct {
	fault string

	mu    sync.Mutex
	now   state
	known state // what Load has last answered
	names int
}

// state is what there is: nothing if there is no data.
type state struct {
	data string
	some bool
}

func (c *cell) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names++; c.fault == "name" {
		return fmt.Sprint("cell ", c.names)
	}
	return "the cell"
}

func (c *cell) put(now state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func (c *cell) Load(ctx context.Context) (*source.Document, error) {
	if ctx.Err() != nil && c.fault != "context" {
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = c.now
	switch {
	case c.fault == "nothing" && !c.now.some:
		return nil, errors.New("there is nothing")
	case !c.now.some:
		return nil, errors.New("the cell has nothing")
	case len(c.now.data) > source.MaxDocument && c.fault != "size":
		return nil, errors.New("the cell has too much")
	}
	data := []byte(c.now.data)
	if c.fault == "loads" {
		data = []byte(strings.ToValidUTF8(c.now.data, ""))
	}
	return &source.Document{Name: "cell", Data: data}, nil
}

func (c *cell) Watch(ctx context.Context, changed func()) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	if c.fault == "early" {
		c.mu.Lock()
		c.known = c.now
		c.mu.Unlock()
	}
	for n := 0; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			switch c.fault {
			case "deaf":
				<-make(chan struct{})
			case "error":
				return ctx.Err()
			}
			return nil
		}
		c.mu.Lock()
		now, news := c.now, c.now != c.known
		c.mu.Unlock()
		if !news || c.fault == "gone" && !now.some || c.fault == "once" && n > 0 || c.fault == "watch" {
			continue
		}
		n++
		if c.fault == "slow" {
			<-time.After(3 * slowWithin)
		}
		changed()
	}
}

var suite = mutanttest.Suite{Test: "TestFault"}

// none is the name of no fault.
const none = "none"

// slowWithin is how soon a source promises to tell that takes three times as long.
const slowWithin = 100 * time.Millisecond

// TestFault runs the suite on a source with a fault, for TestCatches.
func TestFault(t *testing.T) {
	fault, within, slack := suite.Chosen(t), time.Second, time.Second
	switch fault {
	case none: // a busy machine is no fault
		slack = time.Minute
	case "slow":
		within, slack = slowWithin, time.Minute
	}
	Run(t, Config{Within: within, slack: slack, New: func(testing.TB) Place {
		c := &cell{fault: fault}
		return Place{
			Source: c,
			Put:    func(data []byte) { c.put(state{string(data), true}) },
			Remove: func() { c.put(state{}) },
		}
	}})
}

// TestCatches: the part of the suite that is meant to see a fault sees it, and sees none where none is.
func TestCatches(t *testing.T) {
	t.Parallel()
	all := []mutanttest.Mutant{{Name: none}}
	for fault, part := range map[string]string{
		"name": "name", "loads": "loads", "nothing": "nothing", "size": "size", "context": "context", "watch": "watch",
		"once": "watch", "slow": "watch", "early": "early", "gone": "gone", "deaf": "end", "error": "end",
	} {
		all = append(all, mutanttest.Mutant{Name: fault, Parts: []string{part}})
	}
	suite.Catch(t, all...)
}
