package credential

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// maxKeys is how many keys a set may have.
const maxKeys = 64

// readSet reads a JSON Web Key Set (RFC 7517).
func (j *JWT) readSet(file []byte) error {
	members, err := readRawObject(file)
	if err != nil {
		return err
	}
	var list []json.RawMessage
	switch raw, there := members["keys"]; {
	case !there && members["kty"] != nil:
		return errors.New(`is one key and no set; write {"keys": [ … ]} around it`)
	case !there:
		return errors.New(`has no list "keys", so it is no key set`)
	case json.Unmarshal(raw, &list) != nil || list == nil:
		return errors.New(`has something else than a list in "keys"`)
	case len(list) == 0:
		return errors.New("has no key in it; tokens need one to be verified with")
	case len(list) > maxKeys:
		return fmt.Errorf("has %d keys; at most %d are read", len(list), maxKeys)
	}
	for i, raw := range list {
		if err := j.addKey(i+1, raw); err != nil {
			return err
		}
	}
	if len(j.keys) == 0 {
		return fmt.Errorf("has no key that tokens can be verified with: %s", strings.Join(j.unused, "; "))
	}
	return j.oneKind()
}

// readRawObject checks a document and reads its outermost object.
func readRawObject(file []byte) (members map[string]json.RawMessage, err error) {
	if bytes.Contains(file, []byte("-----BEGIN ")) {
		return nil, errors.New("is PEM and no key set; name it as key_file")
	}
	if !validJSON(file) {
		return nil, errors.New("is not valid JSON, or has a key twice in an object; get it anew from the issuer")
	}
	if json.Unmarshal(file, &members) != nil || members == nil {
		return nil, errors.New(`is no JSON object; a key set is {"keys": [ … ]}`)
	}
	return members, nil
}

// addKey reads one key of a set. Those for something else are noted and left out, as RFC 7517 advises; what is wrong is
// refused, since the issuer's key would be missing without a word.
func (j *JWT) addKey(number int, raw json.RawMessage) error {
	k, err := j.readSetKey(raw)
	if other := errOther(""); errors.As(err, &other) {
		j.unused = append(j.unused, fmt.Sprintf("key %d %s", number, other))
		return nil
	}
	if err != nil {
		return fmt.Errorf("key %d %w", number, err)
	}
	j.keys = append(j.keys, k)
	return nil
}

// keyFields are the members of a key that say what it is for. They are read by their exact names.
type keyFields struct {
	kty, use, alg, kid string
	ops                []string
	private            bool
}

func (j *JWT) readSetKey(raw json.RawMessage) (k key, err error) {
	f, err := readKeyFields(raw)
	if err != nil {
		return key{}, err
	}
	switch {
	case f.private:
		return key{}, errPrivate
	case f.use != "" && f.use != "sig", f.ops != nil && !slices.Contains(f.ops, "verify"):
		return key{}, errOther("is not for signatures")
	case !slices.Contains([]string{"RSA", "EC", "OKP", "oct"}, f.kty):
		return key{}, errOther("is of an unknown type")
	}
	var parsed jose.JSONWebKey
	switch err := parsed.UnmarshalJSON(raw); {
	case errors.Is(err, jose.ErrUnsupportedKeyType):
		return key{}, errOther("is of a size or on a curve that is not supported")
	case err != nil:
		return key{}, errors.New("is malformed; get the set anew from the issuer")
	}
	k = key{kid: f.kid, material: parsed.Key}
	k.algorithms, err = j.fitting(parsed.Key, f.alg)
	return k, err
}

func readKeyFields(raw json.RawMessage) (f keyFields, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return keyFields{}, errors.New("is no JSON object")
	}
	for name, to := range map[string]any{"kty": &f.kty, "use": &f.use, "alg": &f.alg, "kid": &f.kid, "key_ops": &f.ops} {
		if value, there := members[name]; there && json.Unmarshal(value, to) != nil {
			return keyFields{}, fmt.Errorf("has something else than text in %q", name)
		}
	}
	for _, name := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "priv"} {
		_, there := members[name]
		f.private = f.private || there
	}
	return f, nil
}

// oneKind refuses secrets beside public keys.
func (j *JWT) oneKind() error {
	secrets := 0
	for _, k := range j.keys {
		if _, ok := k.material.([]byte); ok {
			secrets++
		}
	}
	if secrets > 0 && secrets < len(j.keys) {
		return errors.New("has secrets beside public keys; keep one kind, and the other in a set of its own")
	}
	return nil
}
