package demo

import (
	"encoding/json"
	"net/http"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/salehttp"
)

// saleCalls are the requests by which a visitor buys.
type saleCalls struct {
	client *client
	heard  *answers
	path   string // of the sku
}

func newSaleCalls(c *client, heard *answers, key flashsale.Key) saleCalls {
	return saleCalls{client: c, heard: heard, path: salehttp.Prefix + "/" + key.Sale + "/skus/" + key.SKU}
}

// result is what the sale says of a reservation, or why there is none.
type result struct {
	RID   string `json:"rid"`
	State string `json:"state"`
	// URL is where to pay.
	URL string `json:"url"`
	// Code and Stock are of refusals.
	Code  flashsale.Code `json:"code"`
	Stock string         `json:"stock"`
	Holds []result       `json:"holds"`
	Token string         `json:"token"`
}

// is reports whether a reservation is in a state.
func (r *result) is(s flashsale.State) bool { return r.State == s.String() }

// final reports whether it will not change any more.
func (r *result) final() bool {
	s, known := flashsale.ParseState(r.State)
	return known && s.Terminal()
}

// decided reports whether SQL has decided.
func (r *result) decided() bool { return r.State != "" && !r.is(flashsale.Pending) }

// read makes of an answer what it says, and keeps it.
func (s *saleCalls) read(q call, r reply) result {
	var doc result
	if r.fate != served || json.Unmarshal(r.body, &doc) != nil {
		return result{}
	}
	s.heard.hear(q.user, &doc)
	for i := range doc.Holds {
		s.heard.hear(q.user, &doc.Holds[i])
	}
	return doc
}

func (s *saleCalls) token(me call) call { return post(me, s.path+"/token", "") }

type reserveBody struct {
	Token    string `json:"token"`
	Quantity int    `json:"quantity"`
}

func (s *saleCalls) reserve(me call, token string) call {
	return post(me, s.path+"/reservations", asJSON(reserveBody{Token: token, Quantity: 1}))
}

func (s *saleCalls) look(me call, rid string) call {
	me.method, me.path, me.body = http.MethodGet, s.path+"/reservations/"+rid, ""
	return me
}

func (s *saleCalls) pay(me call, rid string) call {
	return post(me, s.path+"/reservations/"+rid+"/pay", "")
}
func (s *saleCalls) cancel(me call, rid string) call {
	return post(me, s.path+"/reservations/"+rid+"/cancel", "")
}

// atBank is what a visitor does on the page of the payment provider.
func (s *saleCalls) atBank(me call, url string, outcome flashsale.PayStatus) call {
	q := post(me, url, "outcome="+string(outcome))
	q.form = true
	return q
}

func post(me call, path, body string) call {
	me.method, me.path, me.body, me.form = http.MethodPost, path, body, false
	return me
}
