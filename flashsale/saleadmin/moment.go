package saleadmin

import (
	"time"
	"unicode/utf8"
)

// instant is a time as documents have it.
func instant(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

// maybe is a time that may not have come.
func maybe(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = instant(at)
	return &at
}

// userOf is a user as text, or as bytes where it is none.
func userOf(user string) (text string, raw []byte) {
	if utf8.ValidString(user) {
		return user, nil
	}
	return "", []byte(user)
}
