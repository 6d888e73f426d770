package saleadmin

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/internal/jsonbody"
)

// Bounds of bodies, in bytes.
const (
	maxBody = 64 << 10
	maxSale = 512 << 10
)

// IdempotencyKey is the header that names an operation: the same request again goes on with it, another one with its name is refused.
const IdempotencyKey = "Idempotency-Key"

// maxOperationID is the longest that a command takes, see engine.Command.
const maxOperationID = 60

// read decodes the body into a document that knows all of its fields.
func (q *request) read(into any, most int64) error {
	if !jsonbody.Is(q.r.Header) {
		return &Problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "the body must be application/json, in UTF-8 and not packed, and say so once"}
	}
	body, bad := jsonbody.Read(q.w, q.r, most)
	if bad != nil {
		return bodyProblem(bad)
	}
	return decode(body, into)
}

// decode is strict: one object of known fields, each once, in UTF-8.
func decode(body []byte, into any) error {
	if bad := jsonbody.Decode(body, into); bad != nil {
		return bodyProblem(bad)
	}
	return nil
}

// bodyProblem says what is wrong with a body, and where.
func bodyProblem(bad *jsonbody.Fault) error {
	field, text := "body", "it is not one whole JSON object"
	switch bad.Kind {
	case jsonbody.TooLarge:
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: fmt.Sprintf("the body has more than %d bytes", bad.Limit)}
	case jsonbody.Stalled:
		return &Problem{Status: http.StatusRequestTimeout, Code: "body_timeout", Detail: "the body did not come in its time; nothing has changed", RetryAfter: 1}
	case jsonbody.Broken:
		text = "it breaks off"
	case jsonbody.NotUTF8:
		text = "it is not UTF-8"
	case jsonbody.NotJSON:
		text = fmt.Sprintf("it is not JSON: %v, after %d bytes", bad.Err, bad.Offset)
	case jsonbody.NotObject:
		text = "it must be a JSON object"
	case jsonbody.TooDeep:
		text = fmt.Sprintf("it is nested more than %d deep", jsonbody.MaxDepth)
	case jsonbody.Trailing:
		text = "something follows the object"
	case jsonbody.UnknownField:
		field, text = shorten(bad.Field), "there is no such field"
	case jsonbody.Repeated:
		field, text = shorten(bad.Field), "it stands there twice"
	case jsonbody.WrongType:
		field, text = cmp.Or(bad.Field, field), fmt.Sprintf("a %s stands there; it takes %s", bad.Got, kindName(bad.Wants))
	}
	return invalid(FieldError{field, text})
}

// kindName names what a field takes for people.
func kindName(kind string) string {
	switch kind {
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + kind
}

// order reads what asks for a change: its body, and what it is called.
func (q *request) order(into any, reason *string, most int64) error {
	if _, err := q.query(); err != nil {
		return err
	}
	id, err := operationID(q.r.Header)
	if err != nil {
		return err
	}
	if err := q.read(into, most); err != nil {
		return err
	}
	q.command = &engine.Command{ID: id, Sale: q.r.PathValue("sale"), SKU: q.r.PathValue("sku"), Reason: *reason, By: q.actor.Name}
	if strings.TrimSpace(*reason) == "" {
		return invalid(FieldError{"reason", "it is missing: whoever reads what was done will ask why"})
	}
	if err := flashsale.CheckReason(*reason); err != nil {
		return invalid(FieldError{"reason", err.Error()})
	}
	return nil
}

func operationID(h http.Header) (string, error) {
	given := h.Values(IdempotencyKey)
	switch {
	case len(given) == 0:
		return newOperationID(), nil
	case len(given) > 1:
		return "", invalid(FieldError{IdempotencyKey, "it is given more than once"})
	}
	if err := CheckOperationID("the id of the operation", given[0]); err != nil {
		return "", invalid(FieldError{IdempotencyKey, err.Error()})
	}
	return given[0], nil
}

// CheckID says what is wrong with the id of a sale or a sku, which what names in the error.
func CheckID(what, id string) error { return flashsale.CheckID(what, id) }

// FormatAmount writes an amount of a document as people do, 9900 of CNY as "99.00 CNY"; see [flashsale.FormatAmount].
func FormatAmount(amount int64, currency string) string {
	return flashsale.FormatAmount(amount, currency)
}

// FormatDecimal is [FormatAmount] without the currency.
func FormatDecimal(amount int64, currency string) string {
	return flashsale.FormatDecimal(amount, currency)
}

// CheckOperationID says what is wrong with the name of an operation.
func CheckOperationID(what, id string) error {
	if err := flashsale.CheckID(what, id); err != nil {
		return err
	}
	if len(id) > maxOperationID {
		return fmt.Errorf("%s has %d bytes, more than %d", what, len(id), maxOperationID)
	}
	return nil
}
