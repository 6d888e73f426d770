package salehttp

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// comeBack and comeBackBy bound when the client of a stream that has ended comes back: not all that an instance had at once.
const comeBack, comeBackBy = time.Second, 5 * time.Second

// events is GET …/{rid}/events: server-sent events, one for each state of the reservation, the current one first.
func (a *answer) events() {
	a.w.Header().Set("Cache-Control", "no-store")
	ticket, byTicket := a.asksByTicket()
	if byTicket {
		a.shopper.User = ticket.user
	} else if a.begun || !a.identify() {
		return
	}
	if !a.shown() {
		return
	}
	if a.h.open.Err() != nil {
		a.problem(&fault{code: flashsale.CodeClosed})
		return
	}
	if !a.h.streams.enter(a.shopper.User) {
		a.problem(&fault{code: codeTooManyStreams})
		return
	}
	defer a.h.streams.leave(a.shopper.User)
	if byTicket && a.r.Method != http.MethodHead && !a.spend(ticket) {
		return
	}
	now, err := a.h.sales.Result(a.r.Context(), a.key, a.rid, a.shopper.User)
	if err != nil {
		a.failed(err)
		return
	}
	a.stream(&now)
}

// asksByTicket reads the ticket of a request, if it has one; one that is not good is answered.
func (a *answer) asksByTicket() (use ticketUse, ok bool) {
	query, err := url.ParseQuery(a.r.URL.RawQuery)
	texts, given := query["ticket"]
	if !given && err == nil {
		return use, false
	}
	if err == nil && len(texts) == 1 {
		use, ok = a.h.tickets.open(ticketScope{a.key, a.rid}, texts[0])
	}
	if !ok {
		a.problem(&fault{code: codeInvalidTicket})
	}
	return use, ok
}

func (a *answer) spend(ticket ticketUse) bool {
	fresh, err := a.h.tickets.spend(a.r.Context(), ticket.id)
	switch {
	case err != nil:
		a.failed(err)
	case !fresh:
		a.problem(&fault{code: codeInvalidTicket})
	}
	return err == nil && fresh
}

// stream sends events until the reservation has ended, the client has gone, the stream has lived its time, or the handler is closed.
func (a *answer) stream(now *engine.Result) {
	seen := a.r.Header.Get("Last-Event-Id") == eventID(now)
	if seen && now.State.Terminal() {
		a.status(http.StatusNoContent) // so that the client does not come back again
		return
	}
	header := a.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Accel-Buffering", "no")
	a.status(http.StatusOK)
	if a.r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithTimeout(a.r.Context(), a.h.cfg.StreamLife)
	defer cancel()
	stop := context.AfterFunc(a.h.open, cancel)
	defer stop()
	out := &eventWriter{a: a, to: http.NewResponseController(a.w)}
	out.retry(comeBack + time.Duration(a.h.cfg.Random()*float64(comeBackBy-comeBack)))
	if !seen {
		out.event(now)
	}
	if out.send() == nil {
		a.follow(ctx, out, now)
	}
	out.end()
}

// follow sends what changes.
func (a *answer) follow(ctx context.Context, out *eventWriter, now *engine.Result) {
	for last := *now; !last.State.Terminal(); {
		wait, cancel := context.WithTimeout(ctx, a.h.cfg.Heartbeat)
		next, err := a.h.sales.Follow(wait, a.key, a.rid, a.shopper.User, last)
		quiet := wait.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			last = next
			out.event(&next)
		case quiet:
			out.comment()
		default: // it cannot be followed here and now; the client comes back
			return
		}
		if out.send() != nil {
			return
		}
	}
}

// eventID names an event: versions of a reservation only grow.
func eventID(r *engine.Result) string { return strconv.FormatInt(r.Version, 10) }

// eventWriter sends events.
type eventWriter struct {
	a    *answer
	to   *http.ResponseController
	next bytes.Buffer
	// deadline tells that the connection has one.
	deadline bool
}

func (w *eventWriter) retry(d time.Duration) {
	w.next.WriteString("retry: " + strconv.FormatInt(d.Milliseconds(), 10) + "\n\n")
}

func (w *eventWriter) comment() { w.next.WriteString(":\n\n") }

func (w *eventWriter) event(r *engine.Result) {
	body := resultOf(r)
	body.Now = w.a.now()
	data := w.a.marshal(&body)
	w.next.WriteString("id: " + eventID(r) + "\nevent: " + body.State + "\ndata: ")
	w.next.Write(data) // it has no line feed: JSON escapes it
	w.next.WriteString("\n\n")
}

// send writes what has been put together, in its time.
func (w *eventWriter) send() error {
	err := w.to.SetWriteDeadline(time.Now().Add(w.a.h.cfg.WriteTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	w.deadline = err == nil
	_, err = w.a.w.Write(w.next.Bytes())
	w.next.Reset()
	if err == nil {
		err = w.to.Flush()
	}
	w.deadline = w.deadline && err == nil // a connection that has failed is not used again
	return err
}

// end takes the deadline away, so that the connection can be used again.
func (w *eventWriter) end() {
	if w.deadline {
		_ = w.to.SetWriteDeadline(time.Time{})
	}
}
