package httppay

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Refusals, and the status that each comes with: one with another status is taken for an answer of something else, such as a proxy.
var (
	createCodes = map[flashsale.Code]int{flashsale.CodeConflict: http.StatusConflict, flashsale.CodeInvalidArgument: http.StatusBadRequest}
	lookCodes   = map[flashsale.Code]int{flashsale.CodeUnknownPayment: http.StatusNotFound}
	refundCodes = map[flashsale.Code]int{flashsale.CodeUnknownPayment: http.StatusNotFound, flashsale.CodeInvalidState: http.StatusConflict}
	listCodes   = map[flashsale.Code]int{flashsale.CodeInvalidArgument: http.StatusBadRequest}
)

// problem is a document of RFC 9457.
type problem struct {
	Type   string         `json:"type"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Detail string         `json:"detail"`
	Code   flashsale.Code `json:"code"`
}

// refusal makes an error of an answer that is no success.
func refusal(in *call, answer *http.Response, text []byte) error {
	var p problem
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(text, &p) != nil {
		p = problem{}
	}
	if status, means := in.codes[p.Code]; means && status == answer.StatusCode {
		return &flashsale.Error{Code: p.Code, Message: "the payment service refuses: " + short(p.Detail, string(p.Code))}
	}
	why := short(p.Detail, "")
	switch {
	case p.Code == flashsale.CodeInvalidSignature:
		why = "it does not take the signature; have both sides the same secret, and clocks that agree?"
	case why != "":
	case answer.StatusCode/100 == 3:
		why = "that leads elsewhere, where no request is sent; write the URL that the service has"
	case answer.StatusCode == http.StatusNotFound:
		why = "is the URL that of the service?"
	}
	if why != "" {
		why = ": " + why
	}
	return unavailable(nil, "the payment service answers %d%s", answer.StatusCode, why)
}

// short is what a service says, in one line that is not long.
func short(text, fallback string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if text == "" {
		return fallback
	}
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// paymentBody is a payment as it is answered. An amount that is missing must not be taken for one of 0.
type paymentBody struct {
	Intent    string     `json:"intent"`
	Status    string     `json:"status"`
	Amount    *int64     `json:"amount"`
	Currency  string     `json:"currency"`
	URL       string     `json:"url"`
	ChangedAt *time.Time `json:"changed_at"`
}

// readPayment reads the answer about an intent.
func (c *Client) readPayment(text []byte, intent string) (*flashsale.ProviderPayment, error) {
	var body paymentBody
	err := json.Unmarshal(text, &body)
	if err == nil && body.Intent != intent {
		err = errors.New("it is about another intent")
	}
	var p flashsale.ProviderPayment
	if err == nil {
		p, err = c.check(&body)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return &p, nil
}

// readPage reads a page of the list.
func (c *Client) readPage(text []byte, cursor string, limit int) ([]flashsale.ProviderPayment, string, error) {
	var body struct {
		Payments []paymentBody `json:"payments"`
		Next     string        `json:"next"`
	}
	err := json.Unmarshal(text, &body)
	switch {
	case err != nil:
	case body.Payments == nil:
		err = errors.New("it has no payments, not even none")
	case len(body.Payments) > limit:
		err = fmt.Errorf("it has %d payments, and %d were asked for", len(body.Payments), limit)
	case body.Next != "" && (body.Next == cursor || len(body.Next) > maxCursor || len(body.Payments) == 0):
		err = errors.New("its next page would be the same again, or is named too long")
	}
	if err != nil {
		return nil, "", unreadable(err)
	}
	page := make([]flashsale.ProviderPayment, len(body.Payments))
	for i := range body.Payments {
		if page[i], err = c.check(&body.Payments[i]); err != nil {
			return nil, "", unreadable(fmt.Errorf("payment %d: %w", i, err))
		}
	}
	return page, body.Next, nil
}

const (
	maxCursor = 512
	maxAmount = 1_000_000_000_000_000
)

// check makes a payment of what is answered, or says why nobody can go by it.
func (c *Client) check(body *paymentBody) (flashsale.ProviderPayment, error) {
	p := flashsale.ProviderPayment{IntentKey: body.Intent, Status: flashsale.PayStatus(body.Status), Currency: body.Currency}
	switch p.Status {
	case flashsale.PayOpen, flashsale.PayCaptured, flashsale.PayFailed, flashsale.PayVoid, flashsale.PayRefunded:
	default:
		return p, errors.New("its status is none of open, captured, failed, void and refunded")
	}
	switch {
	case body.Intent == "" || len(body.Intent) > 255:
		return p, errors.New("it names no intent")
	case body.Amount == nil || *body.Amount < 0 || *body.Amount > maxAmount:
		return p, errors.New("its amount is missing, or none")
	case len(body.Currency) != 3:
		return p, errors.New("its currency is not three letters")
	case body.ChangedAt == nil || body.ChangedAt.IsZero():
		return p, errors.New("changed_at is missing")
	}
	p.Amount, p.ChangedAt = *body.Amount, *body.ChangedAt
	if c.canPay(body.URL) {
		p.URL = body.URL
	} else if p.Status == flashsale.PayOpen {
		return p, errors.New("its url, where the shopper pays, is missing or none that a browser may be sent to; it begins with https://")
	}
	return p, nil
}

// canPay tells that a browser may be sent to a URL: it is no less safe than the service itself.
func (c *Client) canPay(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxURL && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && c.base.Scheme == "http")
}

func unreadable(err error) error {
	return unavailable(err, "the answer of the payment service cannot be used")
}
