package credential

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"testing"
	"time"
)

// testCertificate makes a certificate of a key, signed by itself; it has expired.
func testCertificate(t testing.TB, key *rsa.PrivateKey) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: testNow.Add(-2 * time.Hour), NotAfter: testNow.Add(-time.Hour)}
	return must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
}
