package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

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
		changed()
	}
}

const faultVariable = "HEADGATE_TEST_FAULT"

// TestFault runs the suite on a source with the fault that the environment names: TestCatches runs it in a process of its own,
// since it is to fail.
func TestFault(t *testing.T) {
	fault, ok := os.LookupEnv(faultVariable)
	if !ok {
		t.Skip(faultVariable + " names no fault: this test is a part of TestCatches")
	}
	slack := time.Second
	if fault == "" { // a busy machine is no fault
		slack = time.Minute
	}
	Run(t, Config{Within: time.Second, slack: slack, New: func(testing.TB) Place {
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
	for fault, part := range map[string]string{
		"": "", "name": "name", "loads": "loads", "nothing": "nothing", "size": "size", "context": "context", "watch": "watch",
		"once": "watch", "early": "early", "gone": "gone", "deaf": "end", "error": "end",
	} {
		t.Run("fault "+fault, func(t *testing.T) {
			t.Parallel()
			run := "^TestFault$"
			if part != "" {
				run += "/^" + part + "$"
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+run, "-test.timeout=10m")
			cmd.Env = append(os.Environ(), faultVariable+"="+fault)
			out, err := cmd.CombinedOutput()
			if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
				t.Fatal(err)
			}
			if part == "" {
				if err != nil {
					t.Errorf("a source without a fault fails:\n%s", out)
				}
			} else if !strings.Contains(string(out), "--- FAIL: TestFault/"+part+" ") {
				t.Errorf("the part %q does not see the fault:\n%s", part, out)
			}
		})
	}
}
