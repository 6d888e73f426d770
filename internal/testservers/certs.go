package testservers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificates are those of one server and its client, signed by an authority of their own.
type certificates struct {
	certFile, keyFile, caFile string
	client                    *tls.Config
}

func newCertificates(dir string) (*certificates, error) {
	ca, err := newIdentity("Headgate test authority", nil)
	if err != nil {
		return nil, err
	}
	server, errServer := newIdentity("127.0.0.1", ca)
	client, errClient := newIdentity("client", ca)
	if err := errors.Join(errServer, errClient); err != nil {
		return nil, err
	}
	c := &certificates{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt"), nil}
	key, err := x509.MarshalPKCS8PrivateKey(server.key)
	if err != nil {
		return nil, err
	}
	err = errors.Join(writePEM(c.certFile, "CERTIFICATE", server.cert.Raw), writePEM(c.keyFile, "PRIVATE KEY", key),
		writePEM(c.caFile, "CERTIFICATE", ca.cert.Raw))
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	c.client = &tls.Config{
		RootCAs: pool, MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{client.cert.Raw}, PrivateKey: client.key}},
	}
	return c, err
}

type identity struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newIdentity makes a certificate signed by an authority, or an authority if there is none.
func newIdentity(name string, authority *identity) (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer := &identity{template, key}
	if authority == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		signer = authority
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, &key.PublicKey, signer.key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &identity{cert, key}, err
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
