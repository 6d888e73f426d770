package flashsale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// EventSchema is the schema of the bodies that MarshalEvent writes. It rises when a field goes away or changes what it means; fields
// that come in addition do not raise it, and a reader ignores those that it does not know.
const EventSchema = 1

// MaxEventBytes is the size that no body of an event reaches: what MarshalEvent writes is smaller, and ParseEvent reads no more.
const MaxEventBytes = 16 << 10

// maxEventReason bounds the reason in an event, in bytes: one of MaxReason with all of it replaced that can be.
const maxEventReason = 2 * MaxReason

// maxOrderID bounds the id of an order, in bytes.
const maxOrderID = 128

// isNoGraph reports whether a character is none of ASCII that can be seen.
func isNoGraph(r rune) bool { return r <= ' ' || r > '~' }

// eventBody is the document. Its names are for good.
type eventBody struct {
	Schema     int    `json:"schema"`
	ID         string `json:"id"`
	RID        string `json:"rid"`
	Version    int64  `json:"version"`
	Sale       string `json:"sale"`
	SKU        string `json:"sku"`
	User       string `json:"user,omitempty"`
	UserBase64 []byte `json:"user_base64,omitempty"`
	Quantity   int64  `json:"quantity"`
	State      string `json:"state"`
	Reason     string `json:"reason,omitempty"`
	OrderID    string `json:"order_id,omitempty"`
	Amount     int64  `json:"amount"`
	Currency   string `json:"currency,omitempty"`
	At         string `json:"at"`
}

// eventTime is RFC 3339 in UTC, with the microseconds that SQL keeps.
const eventTime = "2006-01-02T15:04:05.000000Z"

// MarshalEvent returns the body of the message that tells other services of an event: one JSON object, the same from every relay.
//
//	schema       1, see EventSchema
//	id           "rid:version": the same for every delivery of this event, and of no other
//	rid          the reservation
//	version      1 when the reservation is first written, and one more with every transition; the higher one is the later one
//	sale, sku    what is sold
//	user         whose it is; if that is no valid UTF-8, there is user_base64 in its place
//	quantity     units
//	state        reserved, confirming, confirmed, cancelled, expired or rejected
//	reason       why it was cancelled, expired or rejected; left out if there is none
//	order_id     the order; left out if there is none
//	amount       what is to be paid for all units, in the smallest unit of the currency, at most 10^15
//	currency     an ISO 4217 code; left out if there is none
//	at           when it came to this state, by the clock of the database: RFC 3339, UTC, microseconds
//
// An event that cannot be one is CodeInvalidArgument. What is no valid UTF-8 in a reason is replaced by U+FFFD.
func MarshalEvent(e *Event) ([]byte, error) {
	text := *e
	text.Reason = strings.ToValidUTF8(e.Reason, "\uFFFD")
	if err := text.check(); err != nil {
		return nil, err
	}
	doc := eventBody{
		Schema: EventSchema, ID: e.MessageID(), RID: e.RID, Version: e.Version, Sale: e.Key.Sale, SKU: e.Key.SKU, Quantity: e.Quantity,
		State: e.State.String(), Reason: text.Reason, OrderID: e.OrderID, Amount: e.Amount, Currency: e.Currency,
		At: e.At.UTC().Format(eventTime),
	}
	if utf8.ValidString(e.User) {
		doc.User = e.User
	} else {
		doc.UserBase64 = []byte(e.User)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&doc); err != nil {
		return nil, &Error{Code: CodeInternal, Message: "event " + e.MessageID(), Err: err}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ParseEvent reads what MarshalEvent has written, for services in Go. Event.ID stays 0: it is the outbox's own. The error's code is
// CodeInvalidArgument, also for a schema that this version does not know.
func ParseEvent(body []byte) (*Event, error) {
	if len(body) >= MaxEventBytes {
		return nil, invalidf("event: a body of %d bytes; there are none of %d or more", len(body), MaxEventBytes)
	}
	var doc eventBody
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, &Error{Code: CodeInvalidArgument, Message: "event: the body is not the JSON of an event", Err: err}
	}
	if doc.Schema != EventSchema {
		return nil, invalidf("event: schema %d; this version reads schema %d", doc.Schema, EventSchema)
	}
	e, err := doc.event()
	if err != nil {
		return nil, err
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	if doc.ID != e.MessageID() {
		return nil, invalidf("event: its id %s is not rid:version, %s", quoted(doc.ID), e.MessageID())
	}
	return e, nil
}

func (doc *eventBody) event() (*Event, error) {
	state, _ := ParseState(doc.State)
	at, err := time.Parse(time.RFC3339Nano, doc.At)
	if err != nil {
		return nil, invalidf("event: at %s is no time of RFC 3339", quoted(doc.At))
	}
	if (doc.User == "") == (len(doc.UserBase64) == 0) {
		return nil, invalidf("event: one of user and user_base64 is needed, and not both")
	}
	return &Event{
		RID: doc.RID, Version: doc.Version, Key: Key{Sale: doc.Sale, SKU: doc.SKU}, User: doc.User + string(doc.UserBase64),
		Quantity: doc.Quantity, State: state, Reason: doc.Reason, OrderID: doc.OrderID, Amount: doc.Amount, Currency: doc.Currency,
		At: at.UTC(),
	}, nil
}

// check says what keeps an event from being one.
func (e *Event) check() error {
	for what, id := range map[string]string{"event: the rid": e.RID, "event: the sale": e.Key.Sale, "event: the sku": e.Key.SKU} {
		if err := CheckID(what, id); err != nil {
			return err
		}
	}
	at := fmt.Sprintf("event %s:%d", e.RID, e.Version)
	if err := CheckUser(e.User); err != nil {
		return &Error{Code: CodeInvalidArgument, Message: at, Err: err}
	}
	switch {
	case e.Version < 1:
		return invalidf("%s: versions begin with 1", at)
	case e.Quantity < 1 || e.Quantity > MaxTotal:
		return invalidf("%s: a quantity of %d; there are 1 to %d", at, e.Quantity, MaxTotal)
	case e.State <= Pending || e.State > Rejected:
		return invalidf("%s: no row of SQL is %s", at, e.State)
	case e.Amount < 0 || e.Amount > maxAmount:
		return invalidf("%s: an amount of %d; there are 0 to %d", at, e.Amount, int64(maxAmount))
	case e.Currency != "" && !isCurrency(e.Currency):
		return invalidf("%s: the currency is not three capital letters", at)
	case len(e.OrderID) > maxOrderID || strings.ContainsFunc(e.OrderID, isNoGraph):
		return invalidf("%s: the order's id %s has spaces or more than %d bytes", at, quoted(e.OrderID), maxOrderID)
	case len(e.Reason) > maxEventReason:
		return invalidf("%s: a reason of %d bytes, more than %d", at, len(e.Reason), maxEventReason)
	case e.At.Year() < 1970 || e.At.Year() > 9999:
		return invalidf("%s: its time lies outside the years 1970 to 9999", at)
	}
	return nil
}
