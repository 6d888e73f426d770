package app

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// loadTLS reads the certificate, if there is one.
func (s *service) loadTLS() error {
	cert, key := s.cfg.TLSCert, s.cfg.TLSKey
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "" || key == "":
		return usagef("tls: a certificate and its key need each other; one of them is missing")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return usagef("tls: the certificate %s with the key %s cannot be used: %w", cert, key, err)
	}
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	return nil
}

func (s *service) listen(ctx context.Context) (err error) {
	if s.front, err = Listen(ctx, "listen", s.cfg.Listen); err != nil {
		return err
	}
	s.closers = append(s.closers, closeQuietly(s.front))
	if s.cfg.Admin == "" {
		return nil
	}
	if s.admin, err = listenAdmin(ctx, s.cfg.Admin, s.cfg.AdminToken, s.cfg.AdminTokens); err != nil {
		return err
	}
	s.closers = append(s.closers, closeQuietly(s.admin))
	return s.giveToken()
}

// giveToken sees to it that the admin listener has a token. Where none can be left for its user, the gate works all the same:
// it is probes that need the listener, and they need no token.
func (s *service) giveToken() error {
	if err := newAdminTokens("", s.cfg.AdminTokens, s.cfg.Log).check(); err != nil {
		return err
	}
	if s.token = s.cfg.AdminToken; s.token != "" || s.cfg.AdminTokens != "" && !isLoopback(s.admin.Addr()) {
		return nil
	}
	token, file, err := writeToken(s.cfg.AdminTokenFile, s.admin.Addr())
	switch {
	case err != nil && s.cfg.AdminTokenFile != "":
		return usagef("admin: the token cannot be written: %w", err)
	case err != nil:
		s.cfg.Log.Warn("nobody can read /status: its token cannot be left in a file; set HEADGATE_ADMIN_TOKEN or name a file", "error", err)
		return nil
	}
	s.token, s.tokenFile = token, file.path
	s.closers = append(s.closers, file.remove)
	return nil
}

// closeQuietly closes a listener that its server has mostly closed before.
func closeQuietly(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
