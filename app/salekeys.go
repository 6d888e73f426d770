package app

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

// parseSaleKeys reads "ID:BASE64", several with commas or white space between them. Its errors quote no key.
func parseSaleKeys(text string) ([]flashsale.TokenKey, error) {
	var keys []flashsale.TokenKey
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r <= ' ' }) {
		id, secret, ok := strings.Cut(word, ":")
		raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(secret, "="))
		if !ok || err != nil {
			return nil, fmt.Errorf("key %d is not ID:BASE64, such as the output of: echo \"k1:$(openssl rand -base64 32)\"", len(keys)+1)
		}
		if len(raw) >= flashsale.MinKeyBytes && Repetitive(string(raw)) {
			return nil, fmt.Errorf("key %d repeats a few bytes, so that it can be guessed; give the output of: echo \"k1:$(openssl rand -base64 32)\"", len(keys)+1)
		}
		keys = append(keys, flashsale.TokenKey{ID: id, Secret: raw})
	}
	if len(keys) == 0 {
		return nil, nil
	}
	_, err := flashsale.NewTokenKeys(keys...) // says what is wrong with ids and lengths
	return keys, err
}

// watchSecrets has the files that keys and secrets come from taken up when they change.
func (s *sale) watchSecrets() {
	if s.keys != nil && s.cfg.KeysFile != "" {
		s.secrets = append(s.secrets, newLiveSecret("HEADGATE_SALE_KEYS_FILE", s.cfg.KeysFile, s.cfg.Keys, s.log, s.replaceKeys))
	}
	if s.cfg.Pay != PayNone && s.cfg.PaySecret != "" && s.cfg.PaySecretFile != "" {
		s.secrets = append(s.secrets, newLiveSecret("HEADGATE_PAY_SECRET_FILE", s.cfg.PaySecretFile, s.cfg.PaySecret, s.log, s.replacePaySecrets))
	}
}

// replaceKeys puts other keys of order tokens in force.
func (s *sale) replaceKeys(text string) ([]any, error) {
	keys, err := parseSaleKeys(text)
	if err != nil {
		return nil, err
	}
	if err := s.keys.Replace(keys...); err != nil {
		return nil, err
	}
	ids := make([]string, len(keys))
	for i := range keys {
		ids[i] = keys[i].ID
	}
	return []any{"keys", strings.Join(ids, ","), "signs", ids[0]}, nil
}

// replacePaySecrets puts other secrets of the payment service in force, also with a provider in this process.
func (s *sale) replacePaySecrets(text string) ([]any, error) {
	secrets, err := checkedPaySecrets(text)
	if err != nil {
		return nil, err
	}
	if s.pay != nil {
		err = s.pay.SetSecrets(secrets...)
	} else if l := s.live.Load(); l != nil {
		err = l.till.simulated.SetSecrets(secrets...)
	} else {
		err = errors.New("the sale has not begun yet")
	}
	return []any{"secrets", len(secrets)}, err
}

// tokenKeys are the keys that were given, or those beside the file of SQLite, which are made when there are none: so a restart does not
// take back the tokens that shoppers have. For a database in memory they end with it.
func (s *sale) tokenKeys() (*flashsale.TokenKeys, error) {
	if s.keys != nil {
		return s.keys, nil
	}
	file := s.cfg.sqliteFile()
	if file == "" {
		return flashsale.NewTokenKeys(newSaleKey())
	}
	keys, err := keptSaleKeys(file + ".keys")
	if err != nil {
		return nil, &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: fmt.Sprintf("sale: the file %s.keys, which keeps the keys of order tokens, "+
			"cannot be used: %v; put that right, or set HEADGATE_SALE_KEYS", file, err)}
	}
	return flashsale.NewTokenKeys(keys...)
}

func newSaleKey() flashsale.TokenKey {
	secret := make([]byte, flashsale.MinKeyBytes)
	_, _ = rand.Read(secret) // it never fails
	return flashsale.TokenKey{ID: "k1", Secret: secret}
}

// keptSaleKeys reads the keys in a file, and writes the file if there is none. The lock on the database sees to it that one process
// does.
func keptSaleKeys(file string) ([]flashsale.TokenKey, error) {
	text, err := readPrivate(file)
	if errors.Is(err, fs.ErrNotExist) {
		key := newSaleKey()
		_, err := replaceFile(file, key.ID+":"+base64.StdEncoding.EncodeToString(key.Secret)+"\n")
		return []flashsale.TokenKey{key}, plainPathError(err)
	}
	if err != nil {
		return nil, plainPathError(err)
	}
	keys, err := parseSaleKeys(text)
	if err == nil && len(keys) == 0 {
		err = errors.New("it is empty; remove it to have a key made")
	}
	return keys, err
}

// readPrivate reads a file that nobody else may read.
func readPrivate(file string) (string, error) {
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("it is no regular file")
	case info.Size() > 4096:
		return "", errors.New("it has more than 4096 bytes")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others can read it (mode %#o); it should have mode 0600", info.Mode().Perm())
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

func plainPathError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
