package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// closingTime is how long the other direction of a tunnel may go on when one has ended.
const closingTime = 5 * time.Second

// tunnel joins client and service after the service has agreed to a websocket. It returns when the tunnel is closed.
func (x *exchange) tunnel(res *http.Response) {
	service, ok := res.Body.(io.ReadWriteCloser)
	if !ok || !x.websock || !agrees(res.Header) {
		err := errors.New("it answered " + res.Status)
		x.at.broke(err)
		x.warn("the upstream switched to a protocol that was not asked for", err)
		x.serviceFailed(&fault{status: http.StatusBadGateway, code: "upstream_protocol", detail: words{"The service answered in a way that cannot be passed on.", "服务的应答无法转发。"}})
		return
	}
	defer service.Close()
	client, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.fail(&fault{status: http.StatusBadRequest, code: "upgrade_unsupported", detail: words{"This connection cannot be upgraded.", "此连接无法升级。"}})
		return
	}
	defer client.Close()
	x.g.open.Add(1)
	defer x.g.open.Add(-1)
	x.status = http.StatusSwitchingProtocols
	if err := x.switchProtocols(buffered.Writer, res); err != nil {
		return
	}
	t := &tunnel{client: client, service: service, idle: x.g.cfg.TunnelIdle}
	t.run(x.r.Context(), buffered.Reader)
	x.bytes = t.toClient.Load()
}

func (x *exchange) switchProtocols(w *bufio.Writer, res *http.Response) error {
	h := make(http.Header, len(res.Header)+4)
	copyHeader(h, res.Header)
	delete(h, "Content-Length") // 101 has no body
	x.g.cfg.Renderer.SetHeaders(h, x.verdict)
	x.switched = h
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	if _, err := w.WriteString("HTTP/1.1 101 Switching Protocols\r\n"); err != nil {
		return err
	}
	if err := h.Write(w); err != nil {
		return err
	}
	if _, err := w.WriteString("\r\n"); err != nil {
		return err
	}
	return w.Flush()
}

// agrees tells whether a service agrees to a websocket, and to nothing else.
func agrees(h http.Header) bool {
	upgrade := h["Upgrade"]
	return len(upgrade) == 1 && strings.EqualFold(upgrade[0], "websocket") && isOption(h["Connection"], "Upgrade")
}

// tunnel copies bytes both ways until both have ended, one has failed, nothing has moved for the idle time, or the request
// is cut.
type tunnel struct {
	client   net.Conn
	service  io.ReadWriteCloser
	idle     time.Duration
	moved    atomic.Int64 // how many pieces have gone through
	toClient atomic.Int64 // bytes
	shut     sync.Once
}

func (t *tunnel) close() {
	t.shut.Do(func() {
		t.client.Close()
		t.service.Close()
	})
}

func (t *tunnel) run(ctx context.Context, early *bufio.Reader) {
	defer t.close()
	stop := context.AfterFunc(ctx, t.close)
	defer stop()
	if t.idle > 0 {
		unwatch := t.watch()
		defer unwatch()
	}
	ended := make(chan bool, 2)
	go func() { ended <- t.copy(t.service, clientReader(t.client, early), nil) }()
	go func() { ended <- t.copy(t.client, t.service, &t.toClient) }()
	if whole := <-ended; !whole {
		t.close()
	}
	last := time.AfterFunc(closingTime, t.close)
	defer last.Stop()
	<-ended
}

// watch closes the tunnel when nothing has moved for the idle time. stop ends it.
func (t *tunnel) watch() (stop func()) {
	var last int64
	return watchIdle(t.idle, func() bool {
		now := t.moved.Load()
		same := now == last
		last = now
		return same
	}, t.close)
}

// clientReader reads first what net/http has read already.
func clientReader(client net.Conn, early *bufio.Reader) io.Reader {
	n := early.Buffered()
	if n == 0 {
		return client
	}
	return io.MultiReader(io.LimitReader(early, int64(n)), client)
}

// copy returns whether the source ended well and the destination could be told so.
func (t *tunnel) copy(to io.Writer, from io.Reader, count *atomic.Int64) bool {
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			t.moved.Add(1)
			w, werr := to.Write(buffer[:n])
			if count != nil {
				count.Add(int64(w))
			}
			if werr != nil {
				return false
			}
		}
		if err != nil {
			half, ok := to.(interface{ CloseWrite() error })
			return err == io.EOF && ok && half.CloseWrite() == nil
		}
	}
}
