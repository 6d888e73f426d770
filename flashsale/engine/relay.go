package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Bounds of one pass of RelayOnce.
const (
	relayPage    = 500
	relayPages   = 20
	relayTimeout = 15 * time.Second // of one call of the broker
	// relayAsideRetries is how many events that were refused are tried once more in a pass.
	relayAsideRetries = 16
)

// The waits between tries double from the first to the last: of a broker that takes nothing, and of an event that it refuses.
const (
	relayWait, relayWaitMost = 250 * time.Millisecond, 15 * time.Second
	asideWait, asideWaitMost = 10 * time.Second, 10 * time.Minute
)

// maxAside bounds how many events can be set aside. When more are refused, what is wrong is not theirs.
const maxAside = 1000

// relaying is what the relay of one engine remembers. All of it can be lost: what was not sent is in the outbox.
type relaying struct {
	turn chan struct{} // one pass at a time
	// wait is that after the next failure of the broker, and until when it is left alone.
	wait  time.Duration
	until time.Time
	// aside are events that the broker has refused for good, by their id in the outbox.
	aside   map[int64]*asideEvent
	alarmed bool
}

type asideEvent struct {
	wait  time.Duration
	until time.Time
}

func newRelaying() *relaying {
	return &relaying{turn: make(chan struct{}, 1), aside: map[int64]*asideEvent{}}
}

// RelayOnce publishes events of the outbox that were not, oldest first, and returns how many it has marked as sent. A broker that takes
// nothing is left alone for growing times, in which a pass does nothing; the outbox waits, and nothing else waits for it. An event that
// the broker refuses for good is set aside and tried again after growing times, while the others go on. Without a Relay there is
// nobody to tell: events count as sent.
func (e *Engine) RelayOnce(ctx context.Context) (int, error) {
	r := e.relaying
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done(): // the pass before waits for a broker that does not answer
		return 0, interrupted(ctx)
	}
	if e.cfg.Now().Before(r.until) {
		return 0, nil
	}
	sent := 0
	for range relayPages {
		n, more, err := e.relayPage(ctx)
		sent += n
		if err != nil || !more {
			return sent, err
		}
	}
	return sent, nil
}

// relayPage relays one page of events, and reports whether there may be more.
func (e *Engine) relayPage(ctx context.Context) (sent int, more bool, err error) {
	limit := relayPage + len(e.relaying.aside) // those set aside are the oldest, and must not hide the others
	listed, err := e.orders.Unsent(ctx, flashsale.LaneRelay, 0, 0, limit)
	if err != nil {
		return 0, false, err
	}
	fresh, again := e.relaying.sort(listed, len(listed) < limit, e.cfg.Now())
	p := publication{ctx: ctx, relay: e.cfg.Relay}
	p.publish(fresh)
	for i := range again {
		p.publish(again[i : i+1])
	}
	e.relayed(&p, len(listed))
	if len(p.sent) > 0 {
		if err := e.orders.Sent(ctx, flashsale.LaneRelay, 0, p.sent); err != nil {
			return 0, false, err
		}
	}
	return len(p.sent), len(listed) == limit && len(p.sent) > 0, p.down
}

// sort tells what of a list was never tried from what was set aside and is due. It forgets what is set aside and not in the list any
// more, though as old: another instance has sent it.
func (r *relaying) sort(listed []flashsale.Event, all bool, now time.Time) (fresh, again []flashsale.Event) {
	seen := make(map[int64]bool, len(listed))
	last := int64(0)
	for i := range listed {
		ev := &listed[i]
		seen[ev.ID], last = true, max(last, ev.ID)
		switch a := r.aside[ev.ID]; {
		case a == nil:
			fresh = append(fresh, *ev)
		case !now.Before(a.until) && len(again) < relayAsideRetries:
			again = append(again, *ev)
		}
	}
	for id := range r.aside {
		if !seen[id] && (all || id < last) {
			delete(r.aside, id)
		}
	}
	return fresh, again
}

// publication is one try to publish events.
type publication struct {
	ctx     context.Context
	relay   flashsale.Relay
	sent    []int64
	refused []refusal
	down    error // why the broker takes nothing now; the rest was not tried
}

type refusal struct {
	event *flashsale.Event
	why   error
}

// publish publishes events, and finds by halves those that are refused for good.
func (p *publication) publish(events []flashsale.Event) {
	if len(events) == 0 || p.down != nil {
		return
	}
	err := p.call(events)
	switch {
	case err == nil:
		for i := range events {
			p.sent = append(p.sent, events[i].ID)
		}
	case flashsale.CodeOf(err) != flashsale.CodeInvalidArgument:
		p.down = err
	case len(events) == 1:
		p.refused = append(p.refused, refusal{&events[0], err})
	default:
		p.publish(events[:len(events)/2])
		p.publish(events[len(events)/2:])
	}
}

func (p *publication) call(events []flashsale.Event) error {
	if p.relay == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, relayTimeout)
	defer cancel()
	return p.relay.Publish(ctx, events)
}

// relayed remembers what came of a try, and raises or ends the alarm.
func (e *Engine) relayed(p *publication, listed int) {
	r := e.relaying
	now := e.cfg.Now()
	for _, id := range p.sent {
		delete(r.aside, id)
	}
	for i := range p.refused {
		e.setAside(&p.refused[i], now)
		if len(r.aside) >= maxAside && p.down == nil {
			p.down = errorf(flashsale.CodeUnavailable, "%s refused by the broker; look at its settings and the relay's", counted(len(r.aside), "event is", "events are"))
		}
	}
	if p.down == nil {
		r.wait, r.until = 0, time.Time{}
	} else if p.ctx.Err() == nil { // an end of this pass is not the broker's fault
		r.wait = min(max(2*r.wait, relayWait), relayWaitMost)
		r.until = now.Add(r.wait)
	}
	e.relayAlarm(p, listed)
}

// setAside leaves an event for later, and says so the first time.
func (e *Engine) setAside(f *refusal, now time.Time) {
	r := e.relaying
	a := r.aside[f.event.ID]
	if a == nil {
		if len(r.aside) >= maxAside {
			return
		}
		a = &asideEvent{}
		r.aside[f.event.ID] = a
		e.log.Error("an event is refused by the broker; it is tried again from time to time, and the others go on",
			slog.String("event", f.event.MessageID()), slog.String("sku", f.event.Key.String()), slog.Any("error", f.why))
	}
	a.wait = min(max(2*a.wait, asideWait), asideWaitMost)
	a.until = now.Add(a.wait)
}

// relayAlarm tells the observer when the relay falls behind, or does not any more.
func (e *Engine) relayAlarm(p *publication, listed int) {
	r := e.relaying
	on := p.down != nil && p.ctx.Err() == nil || len(r.aside) > 0
	if on == r.alarmed {
		return
	}
	r.alarmed = on
	switch {
	case !on:
		e.observer.Alarm(AlarmRelay, "", false, 0, "events are published")
	case p.down != nil:
		e.observer.Alarm(AlarmRelay, "", true, float64(listed), fmt.Sprintf("the broker takes no events: %v", p.down))
	default:
		e.observer.Alarm(AlarmRelay, "", true, float64(len(r.aside)), counted(len(r.aside), "event is refused by the broker", "events are refused by the broker"))
	}
}

// endRelayAlarm ends it here.
func (e *Engine) endRelayAlarm() {
	r := e.relaying
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.alarmed {
		r.alarmed = false
		e.observer.Alarm(AlarmRelay, "", false, 0, "another instance publishes events now")
	}
}
