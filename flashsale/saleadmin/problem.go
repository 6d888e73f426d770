package saleadmin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

// Problem is an answer that is none of success, as application/problem+json (RFC 9457); the client returns it as its error.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong and what to do. Code is stable: that of a flashsale.Error, or unauthorized, forbidden,
	// method_not_allowed, unsupported_media_type, body_timeout, body_too_large, preflight, refused.
	Detail string `json:"detail"`
	Code   string `json:"code"`
	// Errors name the fields that are wrong.
	Errors []FieldError `json:"errors,omitempty"`
	// OperationID, Operations and Findings are those of a change, as in Change.
	OperationID string      `json:"operation_id,omitempty"`
	Operations  []Operation `json:"operations,omitempty"`
	Findings    []Finding   `json:"findings,omitempty"`
	// Instance has answered, and Alarms are those that it knows of, where a sale cannot be shown since a store is away.
	Instance string  `json:"instance,omitempty"`
	Alarms   []Alarm `json:"alarms,omitempty"`
	// RetryAfter is in seconds, 0 if asking again does not help.
	RetryAfter int `json:"retry_after,omitempty"`
}

// FieldError is what is wrong with a field of the body, or with a header or parameter.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error says it in a sentence.
func (p *Problem) Error() string {
	if len(p.Errors) == 0 {
		return p.Detail
	}
	text := make([]string, len(p.Errors))
	for i, e := range p.Errors {
		text[i] = e.Field + ": " + e.Message
	}
	return p.Detail + ": " + strings.Join(text, "; ")
}

// Write answers with it. Its Type and Title are set.
func (p *Problem) Write(w http.ResponseWriter) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	h := w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who has gone away needs no answer
}

// invalid is a problem with fields.
func invalid(fields ...FieldError) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: string(flashsale.CodeInvalidArgument), Detail: "what was sent cannot be used", Errors: fields}
}

// problemOf is the answer to an error.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	code := flashsale.CodeOf(err)
	p := &Problem{Status: statusOf(code), Code: string(code), Detail: err.Error()}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p.Status, p.Code = http.StatusServiceUnavailable, string(flashsale.CodeUnavailable)
	case code == "" || code == flashsale.CodeInternal:
		p.Code = string(flashsale.CodeInternal)
	}
	if p.Status == http.StatusServiceUnavailable {
		p.RetryAfter = 2
	}
	return p
}

func statusOf(code flashsale.Code) int {
	switch code {
	case flashsale.CodeUnknownSale, flashsale.CodeUnknownSKU, flashsale.CodeNotFound, flashsale.CodeUnknownPayment:
		return http.StatusNotFound
	case flashsale.CodeInvalidArgument:
		return http.StatusBadRequest
	case flashsale.CodeInvalidQuantity, flashsale.CodeConflict:
		return http.StatusUnprocessableEntity
	case flashsale.CodeExists, flashsale.CodeInvalidState, flashsale.CodeNotOpen:
		return http.StatusConflict
	case flashsale.CodeUnavailable, flashsale.CodeRebuilding, flashsale.CodeStaleEpoch, flashsale.CodeBusy, flashsale.CodeFenced, flashsale.CodeClosed:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
