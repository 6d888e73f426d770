package resilience

import (
	"context"
	"fmt"
	"math"
	"time"
)

// lostStore is what level 1 goes by.
type lostStore struct {
	lost bool
	back time.Time // since when it is back, zero while it is not
}

// look looks at the levels until ctx ends.
func (l *Levels) look(ctx context.Context) {
	l.tick(time.Now())
	ticker := time.NewTicker(levelsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.tick(time.Now())
		}
	}
}

func (l *Levels) tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost.look(l.cfg.Lost(), now, l.cfg.Settle)
	if c, ok := l.devices.tick(now); ok {
		l.judge(c, now)
	}
	l.apply(now)
}

// look takes over whether the store is lost: at once if it is, and only when it has been back for a time if not.
func (s *lostStore) look(lost bool, now time.Time, settle time.Duration) {
	switch {
	case lost:
		s.lost, s.back = true, time.Time{}
	case !s.lost:
	case s.back.IsZero():
		s.back = now
	case now.Sub(s.back) >= settle:
		s.lost = false
	}
}

// judge turns level 2 on, or alerts, if too many devices were denied.
func (l *Levels) judge(c deviceCount, now time.Time) {
	share, ok := c.share()
	if !ok || l.DeviceLifted() {
		return
	}
	if share <= l.policy.DeniedDevices {
		if share < l.policy.DeniedDevices*3/4 {
			l.alerted = false
		}
		return
	}
	why := fmt.Sprintf("%.1f%% of about %.0f devices were denied by the device layer alone within %s; %.4g%% are too many",
		share*100, math.Round(c.seen), l.policy.For, l.policy.DeniedDevices*100)
	if l.policy.Automatic && !l.held.inForce(now) {
		l.auto.start(&handState{Level: LevelDeviceLifted, On: true, By: Automatic, Why: why}, now, l.policy.RetryAfter, l.shared())
		l.nudge()
		return
	}
	if !l.alerted {
		l.alerted = true
		l.cfg.Logger.Warn("a level may be worth turning on by hand", "switch", switchName(LevelDeviceLifted), "why", why)
		l.cfg.Observer.LevelAlert(LevelDeviceLifted, why)
	}
}

// apply brings the switches in line with what they go by. The caller holds mu.
func (l *Levels) apply(now time.Time) {
	l.auto.expire(now)
	l.held.expire(now)
	lost := Switch{On: l.lost.lost, By: Automatic}
	if lost.On {
		lost.Why = l.cfg.LostWhy()
	} else {
		lost.Why = "the store has answered for " + l.cfg.Settle.String()
	}
	l.set(LevelStoreLost, &lost, now)
	l.set(LevelDeviceLifted, l.wantDevices(now), now)
	h := &l.hands[LevelRestricted-LevelDeviceLifted].state
	l.set(LevelRestricted, &Switch{On: h.On, By: ByHand, Why: h.Why, Since: h.Since}, now)
}

// wantDevices says how the switch of level 2 should be: a hand first, then by itself.
func (l *Levels) wantDevices(now time.Time) *Switch {
	h := &l.hands[0].state
	switch is := &l.switches[LevelDeviceLifted-1]; {
	case h.On:
		return &Switch{On: true, By: ByHand, Why: h.Why, Since: h.Since}
	case l.held.inForce(now):
		return &Switch{By: ByHand, Why: h.Why, Since: h.Since}
	case l.auto.inForce(now) && l.policy.Automatic:
		return &Switch{On: true, By: Automatic, Why: l.auto.state.Why, Until: l.auto.until}
	case is.On && is.By == ByHand:
		return &Switch{By: ByHand, Why: h.Why, Since: h.Since}
	case !l.policy.Automatic:
		return &Switch{By: Automatic, Why: "the policy does not let it turn on by itself"}
	}
	return &Switch{By: Automatic, Why: "tried again after " + l.policy.RetryAfter.String()}
}

// set turns a switch to where it should be, and tells if it was elsewhere.
func (l *Levels) set(level int, want *Switch, now time.Time) {
	is := &l.switches[level-1]
	turned := want.On != is.On
	if !turned && (!is.On || want.By == is.By) {
		if is.On {
			is.Why, is.Until = want.Why, want.Until
		}
		return
	}
	is.On, is.By, is.Why, is.Since, is.Until = want.On, want.By, want.Why, want.Since, want.Until
	if is.Since.IsZero() {
		is.Since = now.UTC().Truncate(time.Millisecond)
	}
	l.on[level-1].Store(is.On)
	if turned && level == LevelDeviceLifted {
		l.alerted = false
		l.devices.restart(l.policy.For, now)
	}
	l.tell(is)
}

func (l *Levels) tell(s *Switch) {
	attrs := []any{"switch", switchName(s.Level), "name", s.Name, "by", s.By, "why", s.Why}
	if s.On {
		l.cfg.Logger.Warn("level on", append(attrs, "turns_off", s.TurnsOff, "ends", l.ends(s))...)
	} else {
		l.cfg.Logger.Info("level off", attrs...)
	}
	l.cfg.Observer.LevelChanged(s.Level, s.On, s.By, s.Why)
}

// switchName names a switch in the log, where "level" says how bad a line is.
func switchName(level int) string { return fmt.Sprintf("L%d", level) }

// ends says what turns a switch off that is on.
func (l *Levels) ends(s *Switch) string {
	switch {
	case s.By == ByHand:
		return "when a hand turns it off"
	case s.Level == LevelStoreLost:
		return "by itself, when the store has answered for " + l.cfg.Settle.String()
	}
	return "by itself at " + s.Until.UTC().Format(time.RFC3339) + ", or when a hand turns it off"
}
