package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// Listen listens on a TCP address. Its errors say in one sentence what is wrong and what to do; what names the listener in
// them. An address that is none is a [*UsageError].
func Listen(ctx context.Context, what, address string) (net.Listener, error) {
	if address == "" {
		return nil, usagef("%s: the address is empty; write one such as :8080", what) // net would take any port
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, listenError(what, address, err)
	}
	return l, nil
}

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
