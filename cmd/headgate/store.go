package main

import (
	"errors"
	"os"

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
	text, err := app.ReadSecret(file)
	if err != nil {
		return "", usagef("the file that %s_FILE names cannot be used: %w", name, err)
	}
	return text, nil
}
