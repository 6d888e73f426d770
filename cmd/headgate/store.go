package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/headgate-io/headgate/app"
)

// storeConfig reads a store from its flag, and what is too secret for flags from the environment.
func storeConfig(text, namespace string) (app.StoreConfig, error) {
	url, err := app.ParseStoreURL(text)
	if err != nil {
		return app.StoreConfig{}, usagef("%w", err)
	}
	cfg := app.StoreConfig{URL: url, Namespace: namespace, SentinelUsername: os.Getenv("HEADGATE_SENTINEL_USERNAME")}
	var err1, err2 error
	cfg.Secret, err1 = secretFromEnv("HEADGATE_SECRET")
	cfg.SentinelPassword, err2 = secretFromEnv("HEADGATE_SENTINEL_PASSWORD")
	return cfg, errors.Join(err1, err2)
}

// secretFromEnv reads a secret from NAME, or from the file that NAME_FILE names.
func secretFromEnv(name string) (string, error) {
	value, file := os.Getenv(name), os.Getenv(name+"_FILE")
	switch {
	case value != "" && file != "":
		return "", usagef("%s and %s_FILE are both set; keep one", name, name)
	case file == "":
		return value, nil
	}
	text, err := readSecret(file)
	if err != nil {
		return "", usagef("the file that %s_FILE names cannot be used: %w", name, err)
	}
	return text, nil
}

// maxSecret is the longest secret that a file can hold, in bytes.
const maxSecret = 4096

// readSecret reads a secret from a file. One that is empty is none: what asks for it must not go on without.
func readSecret(file string) (string, error) {
	f, err := os.Open(file)
	var text []byte
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxSecret+1))
	}
	var path *os.PathError
	secret := strings.TrimSpace(string(text))
	switch {
	case errors.As(err, &path):
		return "", path.Err
	case err != nil:
		return "", err
	case secret == "":
		return "", errors.New("it is empty")
	case len(text) > maxSecret:
		return "", fmt.Errorf("it has more than %d bytes", maxSecret)
	}
	return secret, nil
}
