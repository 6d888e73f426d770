package headgate

import (
	"errors"
	"fmt"
)

// Code classifies an error by what the caller can do about it. Its text is stable: it is what answers, metrics and the
// .test language show.
type Code string

// The codes. After every one of them there is no verdict, and, but for CodeIndeterminate, nothing was charged.
const (
	// CodeInvalidLimit: the limit is missing, or its text or numbers are out of bounds. Change the limit.
	CodeInvalidLimit Code = "invalid_limit"
	// CodeInvalidCost: the cost is negative or above MaxCount, or not 0 or 1 for a concurrency limit.
	CodeInvalidCost Code = "invalid_cost"
	// CodeInvalidCharge: another part of a charge is wrong: a mode, a lockout, a missing or overlong holder.
	CodeInvalidCharge Code = "invalid_charge"
	// CodeDuplicateCharge: one (slot, key) stands twice in a take.
	CodeDuplicateCharge Code = "duplicate_charge"
	// CodeTooManyCharges: a take has more than MaxCharges charges.
	CodeTooManyCharges Code = "too_many_charges"
	// CodeInvalidTime: the time passed in lies outside the years 1850 to 2095.
	CodeInvalidTime Code = "invalid_time"
	// CodeOverloaded: the queue in front of the store is full. Shed load.
	CodeOverloaded Code = "overloaded"
	// CodeUnavailable: the store cannot be reached or refuses to work. Nothing ran.
	CodeUnavailable Code = "unavailable"
	// CodeTimeout: the deadline passed before anything was sent. Nothing ran.
	CodeTimeout Code = "timeout"
	// CodeIndeterminate: the request was sent and no answer came. It may or may not have been charged; it must not be repeated.
	CodeIndeterminate Code = "indeterminate"
	// CodeClockSkew: the clock of the store and of the caller are too far apart for a calendar window. Nothing ran; asked
	// again, with windows around the store's clock, it may pass.
	CodeClockSkew Code = "clock_skew"
	// CodeUnsupported: the store cannot do what was asked of it.
	CodeUnsupported Code = "unsupported"
	// CodeClosed: the store has been closed.
	CodeClosed Code = "closed"
	// CodeInternal: a fault of the store, such as an answer that cannot be read.
	CodeInternal Code = "internal"
)

// Error is the error of every package here: a code for programs and a message for people.
type Error struct {
	Code    Code
	Message string
	// Charge is the index of the charge at fault, -1 if none is.
	Charge int
	// Err is the cause, if there is one.
	Err error
}

// Error returns the message, and that of the cause.
func (e *Error) Error() string {
	switch {
	case e.Message == "" && e.Err != nil:
		return string(e.Code) + ": " + e.Err.Error()
	case e.Message == "":
		return string(e.Code)
	case e.Err != nil:
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [*Error] in the chain of err, "" if there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

func newError(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Charge: -1, Message: fmt.Sprintf(format, args...)}
}

func chargeError(code Code, charge int, format string, args ...any) *Error {
	return &Error{Code: code, Charge: charge, Message: fmt.Sprintf("charge %d: ", charge) + fmt.Sprintf(format, args...)}
}

func limitErrorf(alg Algorithm, format string, args ...any) error {
	return newError(CodeInvalidLimit, alg.String()+": "+format, args...)
}
