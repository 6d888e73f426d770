package resilience

import (
	"bytes"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLevelsInTheLog: a line says which switch, who turned it and why, what does not work, and how that ends; and no key of a
// line is one that slog has for itself, or who reads the log as JSON would find a level's number where a line's level should be.
func TestLevelsInTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var lost atomic.Bool
		const own = "own." // before slog's own keys
		rename := func(_ []string, a slog.Attr) slog.Attr {
			switch {
			case a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
				return slog.Attr{}
			case a.Key == slog.LevelKey && a.Value.Kind() == slog.KindAny, a.Key == slog.MessageKey:
				a.Key = own + a.Key
			}
			return a
		}
		in := start(t, nil, "", func(c *LevelsConfig) {
			c.Lost, c.Policy.Automatic = lost.Load, true
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: rename}))
		})
		lost.Store(true)
		time.Sleep(time.Second)
		lost.Store(false)
		time.Sleep(3 * time.Second)
		in.turn(t, LevelRestricted, true, "the sale begins")
		in.turn(t, LevelRestricted, false, "all is well")
		in.crowd(2*time.Minute, 50)
		synctest.Wait()
		const want = `own.level=WARN own.msg="level on" switch=L1 name="store lost" by=automatic why="the store does not answer" turns_off="limits shared by all instances: each admits its own part" ends="by itself, when the store has answered for 2s"
own.level=INFO own.msg="level off" switch=L1 name="store lost" by=automatic why="the store has answered for 2s"
own.level=WARN own.msg="level on" switch=L3 name=restricted by=hand why="the sale begins" turns_off="the service for everybody who is not on the lists of l3" ends="when a hand turns it off"
own.level=INFO own.msg="level off" switch=L3 name=restricted by=hand why="all is well"
`
		got, device, _ := bytes.Cut(log.Bytes(), []byte(`own.level=WARN own.msg="level on" switch=L2`))
		if string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if !bytes.Contains(device, []byte(`ends="by itself at 2000-01-01T00:11:`)) {
			t.Errorf("level 2: got %s", device)
		}
	})
}
