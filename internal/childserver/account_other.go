//go:build !unix

package childserver

// Account is whoever runs this program: this system has no other way.
type Account struct{}

// Unprivileged returns the zero Account.
func Unprivileged(...string) (Account, error) { return Account{}, nil }

// Own does nothing.
func (Account) Own(string) error { return nil }
