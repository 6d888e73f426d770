package app

import (
	"errors"
	"fmt"

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
