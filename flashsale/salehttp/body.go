package salehttp

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
)

const (
	// maxBody bounds the body of a shopper's request, in bytes; maxWebhook that of the provider's.
	maxBody    = 4 << 10
	maxWebhook = 64 << 10
)

// read reads a body that may have so many bytes. What is longer is not read.
func (a *answer) read(most int64) ([]byte, *fault) {
	if a.r.ContentLength > most {
		if a.r.ProtoMajor == 1 {
			a.w.Header().Set("Connection", "close") // else the server reads on, to keep the connection
		}
		return nil, &fault{code: codeTooLarge}
	}
	body, err := io.ReadAll(http.MaxBytesReader(a.w, a.r.Body, most))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &fault{code: codeTooLarge}
	}
	if err != nil {
		return nil, &fault{code: flashsale.CodeInvalidArgument}
	}
	return body, nil
}

// fields reads the JSON object of a POST into the fields it may have. A request without a body has none.
func (a *answer) fields(into map[string]any) *fault {
	if a.r.ContentLength != 0 || a.r.Header.Get("Content-Type") != "" {
		if !isJSON(a.r.Header) {
			return &fault{code: codeMediaType}
		}
	}
	body, f := a.read(maxBody)
	if f != nil {
		return f
	}
	if len(body) == 0 {
		return nil
	}
	if err := decodeObject(body, into); err != nil {
		return &fault{code: flashsale.CodeInvalidArgument}
	}
	return nil
}

// bare answers a request that has anything in its body.
func (a *answer) bare() bool {
	if f := a.fields(nil); f != nil {
		a.problem(f)
		return false
	}
	return true
}

// isJSON reports whether a body is JSON in UTF-8, and not packed.
func isJSON(header http.Header) bool {
	types := header["Content-Type"]
	if len(types) != 1 || header.Get("Content-Encoding") != "" {
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

// decodeObject reads a JSON object strictly: each name is one of into's, letter by letter, and stands there once; each value is of the type of
// that field; and nothing follows. Each field is the address of a pointer, which stays nil if it is not there, or null.
func decodeObject(body []byte, into map[string]any) error {
	if !utf8.Valid(body) {
		return errors.New("it is no UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("it is no object: %w", err)
	}
	seen := make(map[string]bool, len(into))
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string)
		field, known := into[text]
		if !known || seen[text] {
			return errors.New("a field is not known, or is there twice")
		}
		seen[text] = true
		if err := d.Decode(field); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}
