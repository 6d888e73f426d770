package app

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"github.com/headgate-io/headgate/policy"
)

// UsageError is an error in what was asked for, such as a malformed URL in a flag, and not in the world.
type UsageError struct{ Err error }

// Error implements error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// LoadPolicy reads the policy in a file. A file that cannot be read is a [*UsageError], one that holds no valid policy a
// [*policy.Error] with everything that is wrong.
func LoadPolicy(file string) (*policy.Policy, error) {
	p, err := policy.Load(file)
	var invalid *policy.Error
	if err != nil && !errors.As(err, &invalid) {
		return nil, &UsageError{err}
	}
	return p, err
}

// listenError says in one sentence why an address cannot be listened on.
func listenError(what, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %s is in use by another process; stop it or choose another port", what, address)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: this user may not listen on %s; choose a port above 1023", what, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %s is no address of this machine", what, address)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return usagef("%s: %q is no address to listen on: %w; write one such as :8080", what, address, err)
}
