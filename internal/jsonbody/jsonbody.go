// Package jsonbody reads bodies of requests that are one JSON object, strictly, and says of those that are not what is wrong, for its caller
// to put into words. Nothing of it echoes what was sent but names of fields and, in Got, numbers.
package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxDepth bounds objects and lists within each other.
const MaxDepth = 16

// answerFor is how long the answer to a body that has stalled may take.
const answerFor = 5 * time.Second

// Kind is what is wrong.
type Kind int

// The kinds.
const (
	MediaType    Kind = iota + 1 // it is not application/json in UTF-8, or is packed
	TooLarge                     // it has more than Limit bytes
	Stalled                      // it did not come in its time
	Broken                       // it breaks off
	NotUTF8                      // it is not UTF-8
	NotJSON                      // it is not JSON: Err says why, after Offset bytes
	Partial                      // it ends before its object does
	NotObject                    // it is JSON, and no object
	TooDeep                      // it is nested more than MaxDepth deep
	UnknownField                 // there is no Field
	Repeated                     // Field stands there twice
	WrongType                    // Field takes Wants, and there stands Got
	Trailing                     // something follows the object
)

// Fault is what is wrong with a body.
type Fault struct {
	Kind Kind
	// Field is a name as it was sent, of any length, or of a WrongType the path of a field, "" for the whole.
	Field string
	// Wants is one of "string", "integer", "number", "boolean", "array" and "object"; Got is what JSON calls what was sent.
	Wants, Got string
	Limit      int64
	Offset     int64
	Err        error
}

// Error says it for logs.
func (f *Fault) Error() string {
	return fmt.Sprintf("the body of the request cannot be used: kind %d, field %.40q, wants %q: %v", f.Kind, f.Field, f.Wants, f.Err)
}

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }

// Is reports whether a header says, once, that the body is JSON in UTF-8, and not packed.
func Is(header http.Header) bool {
	types := header["Content-Type"]
	if len(types) != 1 || len(header["Content-Encoding"]) > 0 {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	mediaType, params, err := mime.ParseMediaType(types[0])
	if err != nil || mediaType != "application/json" {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// Read reads a body of any type, of at most so many bytes: one that announces more is not read. The fault's kind is TooLarge, Stalled or
// Broken. Of a body that has not come whole the connection is closed with the answer, for which there is time though that for the request is over.
func Read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, *Fault) {
	if r.ContentLength > most {
		leave(w, r)
		return nil, &Fault{Kind: TooLarge, Limit: most}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		return body, nil
	}
	f := &Fault{Kind: Broken, Limit: most, Err: err}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		f.Kind, f.Limit = TooLarge, large.Limit
	} else if isTimeout(err) {
		f.Kind = Stalled
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerFor)) // one that cannot set it has none that matters
	}
	leave(w, r)
	return nil, f
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, os.ErrDeadlineExceeded) || ok && timeout.Timeout()
}

// leave has the server not read on, to keep the connection.
func leave(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// Decode decodes a body into a struct: one object in UTF-8 of fields that the struct has, each once and written as there, each of its type, and
// nothing after it. The names of the struct's fields have small letters, digits and underscores alone. A field that is missing, or null, stays as it is.
func Decode(body []byte, into any) *Fault {
	if !utf8.Valid(body) {
		return &Fault{Kind: NotUTF8}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if f := checkNames(d, 0); f != nil {
		return f
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &Fault{Kind: Trailing, Offset: d.InputOffset()}
	}
	d = json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return faultOf(d.Decode(into))
}

// checkNames walks through a value and refuses a name that stands twice in an object, since the decoder would take the last; and one with other
// characters than those of fields, since the decoder looks at no case, and takes "ſ" for an "s".
func checkNames(d *json.Decoder, depth int) *Fault {
	token, err := d.Token()
	if err != nil {
		return faultOf(err)
	}
	open, nested := token.(json.Delim)
	switch {
	case depth == 0 && open != '{':
		return &Fault{Kind: NotObject}
	case !nested:
		return nil
	case depth == MaxDepth:
		return &Fault{Kind: TooDeep}
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			if f := checkName(d, seen); f != nil {
				return f
			}
		}
		if f := checkNames(d, depth+1); f != nil {
			return f
		}
	}
	_, err = d.Token()
	return faultOf(err)
}

func checkName(d *json.Decoder, seen map[string]bool) *Fault {
	token, err := d.Token()
	if err != nil {
		return faultOf(err)
	}
	name, _ := token.(string)
	switch {
	case name == "" || strings.ContainsFunc(name, notOfFields):
		return &Fault{Kind: UnknownField, Field: name}
	case seen[name]:
		return &Fault{Kind: Repeated, Field: name}
	}
	seen[name] = true
	return nil
}

func notOfFields(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }

// faultOf says what an error of the decoder means.
func faultOf(err error) *Fault {
	if err == nil {
		return nil
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &Fault{Kind: WrongType, Field: kind.Field, Wants: wants(kind.Type.Kind().String()), Got: kind.Value}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &Fault{Kind: NotJSON, Offset: syntax.Offset, Err: syntax}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &Fault{Kind: UnknownField, Field: strings.Trim(name, `"`)}
	}
	return &Fault{Kind: Partial, Err: err}
}

// wants names what a Go type takes.
func wants(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "integer"
	case strings.HasPrefix(kind, "float"):
		return "number"
	case kind == "bool":
		return "boolean"
	case kind == "slice", kind == "array":
		return "array"
	case kind == "struct", kind == "map", kind == "ptr":
		return "object"
	}
	return kind
}
