package resilience

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The notes by which instances tell each other of switches: how a hand has set a switch, for good; and, for as long as the note
// stays, that level 2 is on by itself, or held off by a hand. Nothing in them that decides is a time of day: an instance whose
// clock is wrong is told the same.
const (
	noteOfHand = "level/%d/hand"
	noteOfAuto = "level/2/automatic"
	noteOfHeld = "level/2/held"
	maxNote    = 4096
	maxRevise  = 1 << 53
)

// handState is how a switch was set, as it is written into a note.
type handState struct {
	Level int       `json:"level"`
	On    bool      `json:"on"`
	Why   string    `json:"why,omitempty"`
	By    string    `json:"by"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Revision grows with every setting by hand that an instance makes over those it knows: the higher is the later, whatever
	// the clocks say. Of two at the same time the one that the board keeps counts.
	Revision int64 `json:"revision,omitempty"`
}

func (s *handState) encode() string {
	text, err := json.Marshal(s)
	if err != nil { // cannot be: texts, numbers, and times of this age
		return ""
	}
	return string(text)
}

func decodeState(text string, level int) (s handState, err error) {
	if len(text) > maxNote {
		return s, fmt.Errorf("it has %d bytes, %d are allowed", len(text), maxNote)
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, err
	}
	if s.Level != level || s.Revision < 0 || s.Revision > maxRevise {
		return s, fmt.Errorf("level %d with revision %d is not of this switch", s.Level, s.Revision)
	}
	s.Why = tidy(s.Why)
	return s, nil
}

// hand is how a hand, here or elsewhere, has set a switch.
type hand struct {
	state   handState
	pending bool // the board is to be told
	blind   bool // it was set before the board was ever heard, and comes after what that says first
}

// after is the revision of a setting over another. At the most, which none reaches but by somebody's malice, settings replace
// each other in the order in which the board gets them.
func after(revision int64) int64 { return min(revision+1, maxRevise) }

// timedNote is something that holds for a time on the whole fleet.
type timedNote struct {
	state   handState
	active  bool
	until   time.Time // by this process's clock; the note's end on the board counts if it comes first
	pending bool
}

// start lets it hold from now on.
func (n *timedNote) start(s *handState, now time.Time, lasts time.Duration, pending bool) {
	*n = timedNote{state: *s, active: true, until: now.Add(lasts), pending: pending}
	n.state.Revision, n.state.Since, n.state.Until = 0, now.UTC().Truncate(time.Millisecond), n.until.UTC().Truncate(time.Millisecond)
}

func (n *timedNote) inForce(now time.Time) bool { return n.active && now.Before(n.until) }

func (n *timedNote) expire(now time.Time) {
	if n.active && !n.inForce(now) {
		*n = timedNote{}
	}
}

// take takes over what the board says.
func (n *timedNote) take(text string, now time.Time, lasts time.Duration) error {
	if text == "" {
		if !n.pending { // what the board was never told it has not ended
			*n = timedNote{}
		}
		return nil
	}
	s, err := decodeState(text, LevelDeviceLifted)
	if err != nil || n.active && n.state.encode() == s.encode() {
		return err
	}
	*n = timedNote{state: s, active: true, until: now.Add(lasts)}
	return nil
}

// take takes over what the board says of a switch, unless it is older: then the board is to be told again.
func (h *hand) take(text string, level int) error {
	if text == "" {
		h.pending = h.state.Revision > 0 // the board has lost it
		return nil
	}
	s, err := decodeState(text, level)
	switch {
	case err != nil:
		return err
	case h.blind && h.pending:
		h.state.Revision = after(s.Revision)
	case s.Revision < h.state.Revision:
		h.pending = true
	default:
		*h = hand{state: s}
	}
	return nil
}

// noted hears of a note that has changed.
func (l *Levels) noted(name, value string) {
	if !strings.HasPrefix(name, "level/") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := time.Now(), error(nil)
	switch name {
	case noteOfAuto:
		err = l.auto.take(value, now, l.policy.RetryAfter)
	case noteOfHeld:
		err = l.held.take(value, now, l.policy.RetryAfter)
	default:
		for i := range l.hands {
			if level := LevelDeviceLifted + i; name == fmt.Sprintf(noteOfHand, level) {
				err = l.hands[i].take(value, level)
			}
		}
		if value == "" && name == fmt.Sprintf(noteOfHand, LevelDeviceLifted) {
			l.held.pending = l.held.inForce(now) // it was lost with the hand's, not at its end
		}
	}
	if err != nil {
		l.cfg.Logger.Warn("a note of a switch cannot be read and is left alone", "note", name, "error", err)
	}
	l.apply(now)
	l.nudge()
}

// nudge has the notes left that are pending.
func (l *Levels) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// publishAll leaves pending notes until ctx ends, and tries again while the board cannot be reached.
func (l *Levels) publishAll(ctx context.Context) {
	retry := time.NewTimer(publishRetry)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-retry.C:
		}
		if err := l.publish(ctx); err != nil {
			retry.Reset(publishRetry)
		}
	}
}

// pendingNote is a note to be left.
type pendingNote struct {
	name, value string
	ttl         time.Duration
}

// publish leaves the notes that are pending.
func (l *Levels) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	select {
	case l.gate <- struct{}{}:
		defer func() { <-l.gate }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	notes := l.pending()
	if len(notes) > 0 {
		if err := l.cfg.Fleet.hear(ctx); err != nil {
			return err // what is written now could be older than what is there
		}
		notes = l.pending()
	}
	for _, n := range notes {
		if err := l.cfg.Fleet.Note(ctx, n.name, n.value, n.ttl); err != nil {
			return err
		}
		l.published(n)
	}
	return nil
}

func (l *Levels) pending() (notes []pendingNote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.hands {
		if h := &l.hands[i]; h.pending {
			notes = append(notes, pendingNote{name: fmt.Sprintf(noteOfHand, LevelDeviceLifted+i), value: h.state.encode()})
		}
	}
	now := time.Now()
	for name, n := range l.timed() {
		if n.pending && n.inForce(now) {
			notes = append(notes, pendingNote{name: name, value: n.state.encode(), ttl: max(n.until.Sub(now), time.Millisecond)})
		}
	}
	return notes
}

func (l *Levels) timed() map[string]*timedNote {
	return map[string]*timedNote{noteOfAuto: &l.auto, noteOfHeld: &l.held}
}

// published notes that the board was told, if it is still so.
func (l *Levels) published(n pendingNote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.hands {
		if h := &l.hands[i]; n.name == fmt.Sprintf(noteOfHand, LevelDeviceLifted+i) && n.value == h.state.encode() {
			h.pending, h.blind = false, false
		}
	}
	if t := l.timed()[n.name]; t != nil && t.state.encode() == n.value {
		t.pending = false
	}
}
