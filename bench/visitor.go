package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// wire is one connection to a shop. It writes requests itself: the load has the same cores as what it measures. It is for one goroutine.
type wire struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// reply is an answer of the shop.
type reply struct {
	status int
	// after is Retry-After, 0 for none.
	after time.Duration
	doc   replyDoc
}

type replyDoc struct {
	Token   string `json:"token"`
	RID     string `json:"rid"`
	State   string `json:"state"`
	OrderID string `json:"order_id"`
	Code    string `json:"code"`
}

// turnedAway tells that the same is to be asked again later: too many come, or something is away for the moment.
func (r *reply) turnedAway() bool {
	return r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable
}

// pending tells that there is no final answer yet.
func (r *reply) pending() bool { return r.status == http.StatusAccepted }

// final is what a shopper is told in the end, with all that must be the same if it is told again.
func (r *reply) final() string {
	if r.status == http.StatusOK || r.pending() {
		return r.doc.State + " " + r.doc.RID + " " + r.doc.OrderID
	}
	return r.doc.Code
}

func (w *wire) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", w.addr)
	if err != nil {
		return err
	}
	w.conn = conn
	if w.in == nil {
		w.in = bufio.NewReaderSize(conn, 2<<10)
	}
	w.in.Reset(conn)
	return nil
}

// close ends the connection at once, so that its port can be used again: there are more connections in a minute than there are ports.
func (w *wire) close() {
	if w.conn == nil {
		return
	}
	if tcp, ok := w.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = w.conn.Close() // nothing is on its way that anybody waits for
	w.conn = nil
}

// send sends a request and returns the head of its answer.
func (w *wire) send(ctx context.Context, v *visitor, method, path, body string) (*http.Response, error) {
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	b := w.out[:0]
	b = append(append(append(b, method...), ' '), path...)
	b = append(append(b, " HTTP/1.1\r\nHost: shop.example.com\r\nAccept: */*\r\nX-User-Id: "...), v.user...)
	b = append(append(b, "\r\nX-Forwarded-For: "...), v.address...)
	if method == http.MethodPost {
		b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}
	b = append(append(b, "\r\n\r\n"...), body...)
	w.out = b
	deadline, _ := ctx.Deadline()
	if err := w.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := w.conn.Write(b); err != nil {
		return nil, err
	}
	return http.ReadResponse(w.in, nil)
}

// ask sends a request and returns its answer. After an error the connection is closed, and the next request has a new one.
func (w *wire) ask(ctx context.Context, v *visitor, method, path, body string) (r reply, err error) {
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	res, err := w.send(ctx, v, method, path, body)
	if err != nil {
		return r, err
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return r, err
	}
	if res.Close {
		w.close()
	}
	return readReply(res, text)
}

func readReply(res *http.Response, text []byte) (r reply, err error) {
	r.status = res.StatusCode
	if after := res.Header.Get("Retry-After"); after != "" {
		seconds, err := strconv.Atoi(after)
		if err != nil {
			return r, fmt.Errorf("Retry-After is %q", after)
		}
		r.after = time.Duration(seconds) * time.Second
	}
	if err := json.Unmarshal(text, &r.doc); err != nil {
		return r, fmt.Errorf("%d %.200q is no document: %w", r.status, text, err)
	}
	return r, nil
}

// visitor is a shopper with an account and an address of their own.
type visitor struct{ user, address, token, rid string }

// newVisitor is the shopper of a number. The addresses are those that are set aside for benchmarks, 198.18.0.0/15.
func newVisitor(n int) visitor {
	at := uint32(n) % (1 << 17)
	return visitor{user: "user-" + strconv.Itoa(n), address: fmt.Sprintf("198.%d.%d.%d", 18+at>>16, at>>8&255, at&255)}
}

// askToken asks for an order token, and keeps it.
func (v *visitor) askToken(ctx context.Context, w *wire, k counter) (reply, error) {
	r, err := w.ask(ctx, v, http.MethodPost, k.path()+"/token", "{}")
	if err == nil && r.status == http.StatusCreated {
		v.token = r.doc.Token
	}
	return r, err
}

// reserve spends the token, or asks again what has become of it.
func (v *visitor) reserve(ctx context.Context, w *wire, k counter) (reply, error) {
	r, err := w.ask(ctx, v, http.MethodPost, k.path()+"/reservations", `{"token":"`+v.token+`","quantity":1}`)
	if err == nil && r.doc.RID != "" {
		v.rid = r.doc.RID
	}
	return r, err
}

// look asks where the reservation stands.
func (v *visitor) look(ctx context.Context, w *wire, k counter) (reply, error) {
	return w.ask(ctx, v, http.MethodGet, k.path()+"/reservations/"+v.rid, "")
}

// follow reads the reservation's events until one tells what has become of it, and leaves as a page does: by closing the connection.
func (v *visitor) follow(ctx context.Context, w *wire, k counter) (r reply, err error) {
	defer w.close()
	res, err := w.send(ctx, v, http.MethodGet, k.path()+"/reservations/"+v.rid+"/events", "")
	if err != nil {
		return r, err
	}
	defer func() {
		w.close() // first: a body that is closed is read to its end, and this one lasts for minutes
		_ = res.Body.Close()
	}()
	if res.StatusCode != http.StatusOK {
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return r, err
		}
		return readReply(res, text)
	}
	r.status = http.StatusOK
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, isData := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !isData {
			continue
		}
		if err := json.Unmarshal(data, &r.doc); err != nil {
			return r, err
		}
		if r.doc.State != flashsale.Pending.String() {
			return r, nil
		}
	}
	return r, errors.Join(lines.Err(), errors.New("the events have ended without a final one"))
}
