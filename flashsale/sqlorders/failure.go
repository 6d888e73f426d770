package sqlorders

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/headgate-io/headgate/flashsale"
)

// failure is what an error of a driver means.
type failure struct {
	kind failKind
	// what names the constraint.
	what string
	// hint says what to do.
	hint string
}

type failKind uint8

const (
	failOther failKind = iota
	// failRetry: the transaction did not happen, because of another one. Again, it may.
	failRetry
	// failDuplicate: a row with this key came in between, or a bug.
	failDuplicate
	// failConstraint: what was to be written is not allowed.
	failConstraint
	// failLost: the database is not there; what was asked may have happened.
	failLost
	// failRefused: somebody has to change something.
	failRefused
)

// lostIfNetwork judges errors that did not come from a server.
func lostIfNetwork(err error) failKind {
	if _, ok := errors.AsType[net.Error](err); ok {
		return failLost
	}
	for _, lost := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed} {
		if errors.Is(err, lost) {
			return failLost
		}
	}
	return failOther
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// failed makes the error of a method out of what its transaction failed with. What the transaction itself refused stays as it is.
func (o *Orders) failed(ctx context.Context, method string, err error) error {
	if _, ok := errors.AsType[*flashsale.Error](err); ok {
		return err
	}
	at := "sqlorders: " + method + " on " + o.d.name
	switch f := o.d.classify(err); {
	case o.closed.Load():
		return &flashsale.Error{Code: flashsale.CodeClosed, Message: at + ": it has been closed"}
	case errors.Is(ctx.Err(), context.Canceled):
		return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: at + ": the caller gave up", Err: ctx.Err()}
	case ctx.Err() != nil || isTimeout(err):
		return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: fmt.Sprintf("%s: no answer within %s", at, o.cfg.Timeout), Err: context.DeadlineExceeded}
	case f.kind == failRetry:
		return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: fmt.Sprintf("%s: other transactions were in the way %d times; ask again", at, maxTries), Err: err}
	case f.kind == failLost:
		return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: at + ": " + orElse(f.hint, "the database does not answer"), Err: err}
	case f.kind == failDuplicate || f.kind == failConstraint: // without the cause, which may quote values
		return &flashsale.Error{Code: flashsale.CodeInternal, Message: at + ": the schema refuses it: " + orElse(f.what, "a constraint")}
	case f.hint != "":
		return &flashsale.Error{Code: flashsale.CodeInternal, Message: at + ": " + f.hint, Err: err}
	}
	return &flashsale.Error{Code: flashsale.CodeInternal, Message: at, Err: err}
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func errorf(code flashsale.Code, format string, args ...any) error {
	return &flashsale.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalidf(format string, args ...any) error {
	return errorf(flashsale.CodeInvalidArgument, format, args...)
}
