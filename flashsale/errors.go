package flashsale

import "errors"

// Code classifies an error or a refusal by what the caller can do about it. Its text is stable.
type Code string

// The codes.
const (
	CodeUnknownSale     Code = "unknown_sale"
	CodeUnknownSKU      Code = "unknown_sku"
	CodeInvalidArgument Code = "invalid_argument"
	CodeInvalidQuantity Code = "invalid_quantity"
	CodeExists          Code = "exists" // there is one with this id, and it says something else
	// CodeInvalidToken: forged, or another's: not the user, sale, sku or device it was issued for.
	CodeInvalidToken Code = "invalid_token"
	CodeTokenExpired Code = "token_expired"
	// CodeConflict: this rid has been used with another user, sku or quantity.
	CodeConflict Code = "conflict"
	// CodeNotOpen: the sku is not on sale now: not yet, not any more, paused, draining or closed. Detail says which.
	CodeNotOpen       Code = "not_open"
	CodePurchaseLimit Code = "purchase_limit"
	CodeSoldOut       Code = "sold_out"
	// CodeBusy: the queue is at its bound, or SQL does not keep up. Ask again after RetryAfter.
	CodeBusy Code = "busy"
	// CodeRebuilding: the Stock is being loaded. Ask again.
	CodeRebuilding Code = "rebuilding"
	// CodeStaleEpoch: the Stock has keys of another epoch, or none: read SQL again. Never shown to shoppers.
	CodeStaleEpoch  Code = "stale_epoch"
	CodeUnavailable Code = "unavailable" // a store or the provider cannot be reached; what was asked may have happened
	CodeNotFound    Code = "not_found"
	// CodeInvalidState: the table of states has no such way from here.
	CodeInvalidState     Code = "invalid_state"
	CodePastDeadline     Code = "past_deadline"
	CodeInvalidSignature Code = "invalid_signature"
	CodeAmountMismatch   Code = "amount_mismatch"
	CodeCurrencyMismatch Code = "currency_mismatch"
	CodeUnknownPayment   Code = "unknown_payment"
	// CodeFenced: another instance has taken this job over.
	CodeFenced   Code = "fenced"
	CodeClosed   Code = "closed" // this adapter or engine has been closed
	CodeInternal Code = "internal"
)

// Error is the error of every package of the sale.
type Error struct {
	Code    Code
	Message string
	Err     error
}

// Error returns the message, and that of the cause.
func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = string(e.Code)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether the target is an *Error of the same code without a message: errors.Is(err, &Error{Code: …}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Err == nil && t.Code == e.Code
}

// CodeOf returns the code of the first [*Error] in the chain of err, "" if there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}
