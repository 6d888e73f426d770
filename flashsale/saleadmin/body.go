package saleadmin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// Bounds of bodies, in bytes and in objects within objects.
const (
	maxBody  = 64 << 10
	maxSale  = 512 << 10
	maxDepth = 16
)

// IdempotencyKey is the header that names an operation: the same request again goes on with it, another one with its name is refused.
const IdempotencyKey = "Idempotency-Key"

// maxOperationID is the longest that a command takes, see engine.Command.
const maxOperationID = 60

// read decodes the body into a document that knows all of its fields.
func (q *request) read(into any, most int64) error {
	kind, _, err := mime.ParseMediaType(q.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &Problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "the body must be application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(q.w, q.r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: fmt.Sprintf("the body has more than %d bytes", most)}
	}
	if err != nil {
		return invalid(FieldError{"body", "it cannot be read to its end"})
	}
	return decode(body, into)
}

// decode is strict: one object of known fields, each once, in UTF-8.
func decode(body []byte, into any) error {
	if !utf8.Valid(body) {
		return invalid(FieldError{"body", "it is not UTF-8"})
	}
	if err := checkNames(json.NewDecoder(bytes.NewReader(body)), 0); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return bodyProblem(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid(FieldError{"body", "something follows the object"})
	}
	return nil
}

// checkNames walks through a value and refuses a name that stands twice in an object, since the decoder would take the last; and one with other
// characters than those of fields, since the decoder looks at no case, and takes "ſ" for an "s".
func checkNames(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return bodyProblem(err)
	}
	open, nested := token.(json.Delim)
	if depth == 0 && open != '{' {
		return invalid(FieldError{"body", "it must be a JSON object"})
	}
	if !nested {
		return nil
	}
	if depth == maxDepth {
		return invalid(FieldError{"body", fmt.Sprintf("it is nested more than %d deep", maxDepth)})
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return bodyProblem(err)
			}
			text := fmt.Sprint(name)
			switch {
			case strings.ContainsFunc(text, notOfFields):
				return noSuchField(text)
			case seen[text]:
				return invalid(FieldError{shorten(text), "it stands there twice"})
			}
			seen[text] = true
		}
		if err := checkNames(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return bodyProblem(err)
}

// bodyProblem says where JSON is wrong.
func bodyProblem(err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := kind.Field
		if field == "" {
			field = "body"
		}
		return invalid(FieldError{field, fmt.Sprintf("a %s stands there; it takes %s", kind.Value, kindName(kind.Type.Kind().String()))})
	}
	const unknown = "json: unknown field "
	if name, ok := strings.CutPrefix(err.Error(), unknown); ok {
		return noSuchField(strings.Trim(name, `"`))
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return invalid(FieldError{"body", fmt.Sprintf("it is not JSON: %v, after %d bytes", syntax, syntax.Offset)})
	}
	return invalid(FieldError{"body", "it is not one whole JSON object"})
}

func notOfFields(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }

func noSuchField(name string) error {
	return invalid(FieldError{shorten(name), "there is no such field"})
}

// kindName names what a field takes for people.
func kindName(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "a list"
	case kind == "struct" || kind == "ptr":
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
	if err := flashsale.CheckID("the id of the operation", given[0]); err != nil {
		return "", invalid(FieldError{IdempotencyKey, err.Error()})
	}
	if len(given[0]) > maxOperationID {
		return "", invalid(FieldError{IdempotencyKey, fmt.Sprintf("it has %d bytes, more than %d", len(given[0]), maxOperationID)})
	}
	return given[0], nil
}
