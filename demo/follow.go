package demo

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// longestEvent bounds one line of an event stream.
const longestEvent = 64 << 10

// follow opens an event stream and hands out what it says, until that is enough, the stream ends, or ctx does. The time that it took
// counts up to the first event: after that the visitor waits for the shop, and not for an answer.
func (c *client) follow(ctx context.Context, q call, enough func(event []byte) bool) reply {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.inFlight, cancel)
	defer stop()
	slow := time.AfterFunc(requestTimeout, cancel)
	defer slow.Stop()
	f := c.flights.begin()
	defer c.flights.end(f)
	req, err := c.request(ctx, q, f.id)
	if err != nil {
		return c.lost(q, reply{}, err)
	}
	start := time.Now()
	res, err := c.http.Do(req)
	if err != nil {
		return c.lost(q, reply{}, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		r, err := readReply(res)
		if err != nil {
			return c.lost(q, r, err)
		}
		return c.judge(q, f, r, time.Since(start))
	}
	r := reply{status: res.StatusCode}
	in := bufio.NewScanner(res.Body)
	in.Buffer(nil, longestEvent)
	for heard := false; in.Scan(); {
		event, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		if !heard {
			heard = true
			slow.Stop()
			c.meter.count(q.kind, served, "", time.Since(start))
		}
		if r.body = []byte(event); enough(r.body) {
			return r
		}
	}
	if r.body == nil {
		err := in.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return c.lost(q, r, err)
	}
	return r // the stream has lived its time, or the connection was lost; the visitor asks again
}

// lost counts a request that came to nothing.
func (c *client) lost(q call, r reply, err error) reply {
	r.fate = failed
	c.logFailure(q, r, err)
	c.meter.count(q.kind, failed, "", 0)
	return r
}
