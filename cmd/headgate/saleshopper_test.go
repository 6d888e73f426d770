package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	mugPath       = "/_headgate/sales/spring/skus/mug"
	mugReserve    = mugPath + "/reservations"
	mugReserveAll = `{"token": %q, "quantity": 1}`
)

// shopper is somebody who buys one mug, and does not give up. Each request goes to any instance.
type shopper struct {
	*saleFleet
	user, token, rid string
	// listens tells that the result comes by event streams, each with a ticket from elsewhere.
	listens bool
	final   string // "confirmed", or "gone"
}

// crowd are shoppers, every other of whom listens if there are several instances.
func (f *saleFleet) crowd(name string, n int) []*shopper {
	crowd := make([]*shopper, n)
	for i := range crowd {
		crowd[i] = &shopper{saleFleet: f, user: fmt.Sprintf("%s%d", name, i), listens: i%2 == 1 && len(f.instances) > 1}
	}
	return crowd
}

// shopAll lets a crowd shop.
func shopAll(all *sync.WaitGroup, crowd []*shopper) {
	for _, p := range crowd {
		all.Go(p.shop)
	}
}

// shop goes on until there is a final answer.
func (p *shopper) shop() {
	for p.final == "" && p.ctx.Err() == nil {
		p.step()
		if p.final == "" {
			select {
			case <-p.ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// step does what comes next. What fails, or is not decided, is tried again.
func (p *shopper) step() {
	switch {
	case p.token == "":
		if r := p.ask("POST", mugPath+"/token", ""); r != nil {
			p.token = r.doc.Token
		}
	case p.rid == "":
		r := p.ask("POST", mugReserve, fmt.Sprintf(mugReserveAll, p.token))
		switch {
		case r == nil:
		case r.status/100 == 2:
			p.rid = r.doc.RID
		case r.doc.Code == "token_expired" || r.doc.Code == "invalid_token":
			p.t.Errorf("%s: the token has not outlived a restart: %s", p.user, r.text)
			p.token = ""
		}
	case p.listens:
		p.listen()
	default:
		r := p.ask("GET", mugReserve+"/"+p.rid, "")
		switch {
		case r == nil:
		case r.status == http.StatusNotFound: // not reserved: try again, with the same token
			p.rid = ""
		case r.status/100 == 2:
			p.told(r.doc.State, r.text)
		}
	}
}

// ask sends a request; nil is one without an answer. Whoever hears that all is gone need not go on.
func (p *shopper) ask(method, path, body string) *said {
	url := path
	if strings.HasPrefix(path, "/") {
		url = p.any().url + path
	}
	r, err := p.send(p.ctx, method, url, p.user, body)
	if err != nil {
		return nil
	}
	if r.doc.Code == "sold_out" && r.doc.Stock == "gone" {
		p.final = "gone"
	}
	return r
}

// told does what is to be done about a state, and reports whether that was done.
func (p *shopper) told(state, text string) bool {
	switch state {
	case "pending":
	case "reserved", "confirming":
		pay := p.ask("POST", mugReserve+"/"+p.rid+"/pay", "")
		return pay != nil && pay.doc.URL != "" && p.ask("POST", pay.doc.URL, "outcome=captured") != nil
	case "confirmed":
		p.final = "confirmed"
		p.sold.Add(1)
	default: // nobody is refused who was first, gives back, or is late
		p.t.Errorf("%s: %s", p.user, text)
		p.final = state
	}
	return true
}

// listen hears from a stream what has become of the reservation, until it ends.
func (p *shopper) listen() {
	path := mugReserve + "/" + p.rid
	r := p.ask("POST", path+"/ticket", "")
	switch {
	case r == nil || r.status == http.StatusServiceUnavailable:
		return
	case r.status == http.StatusNotFound:
		p.rid = ""
		return
	case r.status != http.StatusCreated:
		p.t.Errorf("%s: a ticket: %d %s", p.user, r.status, r.text)
		return
	}
	events := p.open(p.any(), path+"/events?ticket="+r.doc.Ticket)
	if events == nil {
		return
	}
	defer events.Close()
	for state := events.next(); state != "" && p.told(state, state) && p.final == ""; { // who could not pay tries again
		state = events.next()
	}
}

// saleEvents is an event stream.
type saleEvents struct {
	io.Closer
	lines *bufio.Scanner
}

// open opens an event stream; nil is one that could not be.
func (f *saleFleet) open(at *saleInstance, path string) *saleEvents {
	req, err := http.NewRequestWithContext(f.ctx, http.MethodGet, at.url+path, nil)
	if err != nil {
		f.t.Error(err)
		return nil
	}
	res, err := f.client.Do(req)
	if err != nil {
		return nil
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable && !strings.Contains(string(text), "not_found") {
			f.t.Errorf("a stream: %d %s", res.StatusCode, text)
		}
		return nil
	}
	return &saleEvents{res.Body, bufio.NewScanner(res.Body)}
}

// next is the state of the next event, "" at the end.
func (e *saleEvents) next() string {
	for e.lines.Scan() {
		if data, ok := strings.CutPrefix(e.lines.Text(), "data: "); ok {
			var result struct{ State string }
			_ = json.Unmarshal([]byte(data), &result) // what is none has no state
			return result.State
		}
	}
	return ""
}

// orders are the states of what a shopper has.
func (p *shopper) orders() (states []string) {
	r := p.ask("GET", "/_headgate/sales/spring/orders", "")
	if r == nil || r.status != http.StatusOK {
		p.t.Fatalf("the orders of %s: %+v", p.user, r)
	}
	for _, o := range r.doc.Orders {
		states = append(states, o.State)
	}
	return states
}
