package resilience

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDevicesAlert(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := start(t, nil, "", nil)
		l.crowd(5*time.Minute, 18)
		l.told.is(t)
		l.crowd(64*time.Second, 23)
		l.told.is(t, "2 alert")
		l.crowd(5*time.Minute, 23)
		l.crowd(3*time.Minute, 18) // fewer, but not so much fewer
		l.crowd(3*time.Minute, 23)
		l.told.is(t)
		l.crowd(3*time.Minute, 5)
		l.crowd(3*time.Minute, 23)
		l.told.is(t, "2 alert")
		if l.DeviceLifted() {
			t.Error("lifted, where the policy lets nothing turn on by itself")
		}
	})
}

func TestDevicesTooFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := start(t, nil, "", automatic)
		for range 300 {
			for d := range uint64(40) {
				l.Device(d, true)
			}
			time.Sleep(time.Second)
		}
		l.told.is(t)
	})
}

func TestDevicesAutomatic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a, c := start(t, b, "a", automatic), start(t, b, "c", automatic)
		a.crowd(64*time.Second, 23)
		if !a.DeviceLifted() || !c.DeviceLifted() {
			t.Fatal("not lifted after a minute")
		}
		s := a.Switches()[1]
		if rest := time.Until(s.Until); s.By != Automatic || rest < 9*time.Minute || rest > 10*time.Minute || !strings.HasPrefix(s.Why, "2") {
			t.Errorf("%+v", s)
		}
		late := start(t, b, "late", automatic)
		synctest.Wait()
		if !late.DeviceLifted() {
			t.Error("not lifted where somebody has joined")
		}
		time.Sleep(10 * time.Minute)
		for _, i := range []instance{a, c, late} {
			if i.DeviceLifted() {
				t.Errorf("%s: still lifted after ten minutes", i.fleet.ID())
			}
		}
		a.crowd(64*time.Second, 23)
		a.told.is(t, "2 true automatic", "2 false automatic", "2 true automatic")
		c.told.is(t, "2 true automatic", "2 false automatic", "2 true automatic")
		a.SetPolicy(LevelsPolicy{})
		if a.DeviceLifted() || !c.DeviceLifted() {
			t.Error("lifted against the policy, or not lifted with it")
		}
	})
}

// TestDevicesHandBeatsAutomatic: off by hand is off on the whole fleet for RetryAfter, whoever then sees too many denied.
func TestDevicesHandBeatsAutomatic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a, c := start(t, b, "a", automatic), start(t, b, "c", automatic)
		a.crowd(64*time.Second, 30)
		c.turn(t, LevelDeviceLifted, false, "no")
		time.Sleep(1200 * time.Millisecond)
		if a.DeviceLifted() || c.DeviceLifted() {
			t.Fatal("still lifted")
		}
		a.crowd(9*time.Minute, 30)
		if a.DeviceLifted() || c.DeviceLifted() {
			t.Error("lifted although a hand holds it off")
		}
		a.told.is(t, "2 true automatic", "2 false hand", "2 alert")
		a.crowd(2*time.Minute, 30)
		if !a.DeviceLifted() || !c.DeviceLifted() {
			t.Error("not lifted when the time is over")
		}
		a.told.is(t, "2 true automatic")
		a.turn(t, LevelDeviceLifted, true, "for good")
		time.Sleep(20 * time.Minute)
		if s := c.Switches()[1]; !s.On || s.By != ByHand || s.Why != "for good" || !s.Until.IsZero() {
			t.Errorf("%+v", s)
		}
		a.told.is(t, "2 true hand")
	})
}

// TestDevicesAutomaticWithoutItsStore: an instance whose board is away lifts its own, and tells when the board is back.
func TestDevicesAutomaticWithoutItsStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a, c := start(t, b, "a", automatic), start(t, b, "c", automatic)
		b.set(func() { b.down = true })
		a.crowd(64*time.Second, 23)
		if !a.DeviceLifted() || c.DeviceLifted() {
			t.Error("not lifted, or told without a board")
		}
		b.set(func() { b.down = false })
		time.Sleep(3 * time.Second)
		if !c.DeviceLifted() {
			t.Error("not told when the board is back")
		}
		time.Sleep(10 * time.Minute)
		if a.DeviceLifted() || c.DeviceLifted() {
			t.Error("still lifted")
		}
	})
}
