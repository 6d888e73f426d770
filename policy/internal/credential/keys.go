package credential

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of keys.
const (
	maxKeyBytes = 1 << 20 // of a file
	minRSA      = 2048    // bits
	maxRSA      = 4096    // bits; what a larger one takes to verify is a burden that each bad token can lay on us
	minSecret   = 32      // bytes
	maxSecret   = 4096    // bytes
)

// key verifies tokens of some algorithms.
type key struct {
	kid        string
	algorithms []string
	material   any // *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey or []byte
}

// family is a kind of key: what its algorithms have in common.
type family uint8

const (
	anyFamily family = iota
	familyRSA
	familyP256
	familyP384
	familyP521
	familyEd25519
	familySecret
)

// algorithm is one that tokens may be signed with.
type algorithm struct {
	name   string
	family family
	// secret is how many bytes a secret needs.
	secret int
}

// algorithms are all there are. The first of a family of public keys is the one that its keys are for if nothing says more.
var algorithms = [...]algorithm{
	{name: "RS256", family: familyRSA},
	{name: "RS384", family: familyRSA},
	{name: "RS512", family: familyRSA},
	{name: "PS256", family: familyRSA},
	{name: "PS384", family: familyRSA},
	{name: "PS512", family: familyRSA},
	{name: "ES256", family: familyP256},
	{name: "ES384", family: familyP384},
	{name: "ES512", family: familyP521},
	{name: "EdDSA", family: familyEd25519},
	{name: "HS256", family: familySecret, secret: 32},
	{name: "HS384", family: familySecret, secret: 48},
	{name: "HS512", family: familySecret, secret: 64},
}

func algorithmOf(name string) (a algorithm, ok bool) {
	for _, a := range algorithms {
		if a.name == name {
			return a, true
		}
	}
	return algorithm{}, false
}

func algorithmNames(of family) (names []string) {
	for _, a := range algorithms {
		if of == anyFamily || of == a.family {
			names = append(names, a.name)
		}
	}
	return names
}

// errPrivate: whoever can read it can make tokens, so it does not lie beside a policy.
var errPrivate = errors.New("is a private key; give the public one, and replace this pair if others could read it")

func (j *JWT) readKeys(file []byte) error {
	if j.cfg.JWKS {
		return j.readSet(file)
	}
	k, err := j.readKey(file)
	if err == nil {
		j.keys = []key{k}
	}
	return err
}

// readKey reads a public key in PEM, or a secret.
func (j *JWT) readKey(file []byte) (k key, err error) {
	switch {
	case bytes.Contains(file, []byte("-----BEGIN ")):
		k.material, err = readPEM(file)
	case bytes.HasPrefix(bytes.TrimSpace(file), []byte("{")):
		err = errors.New("looks like a key set; name it as jwks_file")
	case !slices.ContainsFunc(j.cfg.Algorithms, isSecret):
		err = errors.New("is no public key in PEM; if it is a secret, name its algorithms, such as HS256")
	default:
		k.material = trimSecret(file)
	}
	if err != nil {
		return key{}, err
	}
	k.algorithms, err = j.fitting(k.material, "")
	return k, err
}

func isSecret(name string) bool {
	a, _ := algorithmOf(name)
	return a.family == familySecret
}

// trimSecret takes away the line end that editors put behind a text. Random bytes may end so of themselves.
func trimSecret(file []byte) []byte {
	text := bytes.TrimRight(file, "\r\n")
	if bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return bytes.Clone(file)
	}
	return bytes.Clone(text)
}

// readPEM reads one public key, or the key of one certificate.
func readPEM(file []byte) (material any, err error) {
	block, rest := pem.Decode(file)
	switch {
	case block == nil:
		return nil, errors.New("has no complete PEM block; it may be cut off")
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, errPrivate
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("has more than one PEM block; of a chain give the first certificate alone, and several keys as a key set")
	}
	switch block.Type {
	case "PUBLIC KEY":
		material, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		material, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			material = certificate.PublicKey
		}
	default:
		return nil, fmt.Errorf("is a PEM block of another kind (%.40q); it needs PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("has a PEM block %q that cannot be read; export the key anew", block.Type)
	}
	return material, nil
}

// errOther says that a key is sound, and not for us.
type errOther string

func (e errOther) Error() string { return string(e) }

// fitting judges a key and returns the algorithms that it is believed with: those that are pinned, or else its own.
func (j *JWT) fitting(material any, own string) (names []string, err error) {
	of, err := familyOf(material)
	if err != nil {
		return nil, err
	}
	possible := algorithmNames(of)
	if own != "" {
		if !slices.Contains(possible, own) {
			return nil, errOther("is for an algorithm that does not sign tokens, or not with a key of its type")
		}
		possible = []string{own}
	}
	switch pinned := j.cfg.Algorithms; {
	case len(pinned) > 0:
		names = slices.DeleteFunc(slices.Clone(possible), func(name string) bool { return !slices.Contains(pinned, name) })
	case of == familySecret && own == "":
		return nil, errors.New("is a secret; name its algorithms, such as HS256")
	default:
		names = possible[:1]
	}
	if err := j.separate(of); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errOther("is for " + strings.Join(possible, ", ") + ", and algorithms names none of these")
	}
	return names, longEnough(material, names)
}

// separate keeps secrets and public keys apart: where both are believed, a public key that everybody has is one mistake
// away from being taken for a secret.
func (j *JWT) separate(of family) error {
	for _, name := range j.cfg.Algorithms {
		switch {
		case of == familySecret && !isSecret(name):
			return fmt.Errorf("is a secret, and %s is for public keys; name algorithms for secrets alone", name)
		case of != familySecret && isSecret(name):
			return fmt.Errorf("is a public key, and %s is for secrets; name algorithms for public keys alone", name)
		}
	}
	return nil
}

// familyOf tells what a key is, if it is a strong one.
func familyOf(material any) (family, error) {
	switch k := material.(type) {
	case *rsa.PublicKey:
		return familyRSA, strongRSA(k)
	case ed25519.PublicKey:
		return familyEd25519, nil
	case []byte:
		return familySecret, nil
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return familyP256, nil
		case elliptic.P384():
			return familyP384, nil
		case elliptic.P521():
			return familyP521, nil
		}
		return anyFamily, errOther("is on another curve than P-256, P-384 and P-521")
	}
	return anyFamily, errOther("is of a type that is not for signatures of tokens; there are RSA, EC and Ed25519")
}

func strongRSA(k *rsa.PublicKey) error {
	switch bits := k.N.BitLen(); {
	case bits < minRSA:
		return fmt.Errorf("is an RSA key of %d bits, which can be broken; have the issuer use one of %d at least", bits, minRSA)
	case bits > maxRSA:
		return fmt.Errorf("is an RSA key of %d bits; at most %d are verified", bits, maxRSA)
	case k.E < 3 || k.E%2 == 0 || k.N.Bit(0) == 0:
		return errors.New("is an RSA key with an exponent or a modulus that no real one has; get it anew from the issuer")
	}
	return nil
}

func longEnough(material any, names []string) error {
	secret, ok := material.([]byte)
	if !ok {
		return nil
	}
	if len(secret) > maxSecret {
		return fmt.Errorf("is a secret of %d bytes; at most %d are read", len(secret), maxSecret)
	}
	for _, name := range names {
		if a, _ := algorithmOf(name); len(secret) < max(a.secret, minSecret) {
			return fmt.Errorf("is a secret of %d bytes; %s needs %d random ones at least", len(secret), name, a.secret)
		}
	}
	return nil
}
