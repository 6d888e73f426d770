package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/demo/redisserver"
)

// ownRedisForm is how the store of a demo that starts its own Redis is written.
const ownRedisForm = "redis-server (or its path: a Redis of the demo's own)"

// demoStorage is where a demo counts.
type demoStorage struct {
	app.StoreConfig
	own *ownRedis // nil if the Redis, or the memory, is not the demo's own
}

type ownRedis struct {
	*redisserver.Server
	program string
}

// name is what the store is called in place of its URL, which has a password that nobody needs.
func (r *ownRedis) name() string { return filepath.Base(r.program) + " of its own at " + r.Addr() }

// demoStore reads where a demo counts, and starts a Redis if it is to be its own.
func demoStore(ctx context.Context, text string) (*demoStorage, error) {
	var own *ownRedis
	if isProgram(text) {
		server, err := redisserver.Start(ctx, redisserver.Config{Program: text})
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		own = &ownRedis{Server: server, program: text}
		text = own.URL()
	}
	// Two demos on one Redis do not meet.
	cfg, err := storeConfig(text, "demo-"+strings.ToLower(rand.Text()[:10]))
	where := &demoStorage{StoreConfig: cfg, own: own}
	if err != nil {
		_ = where.close() // the reason why there is no demo is another
		return nil, err
	}
	return where, nil
}

// isProgram tells the name or the path of a program from the URL of a store.
func isProgram(store string) bool {
	switch {
	case strings.Contains(store, "://"):
		return false
	case strings.ContainsRune(store, filepath.Separator):
		return true
	}
	return store == redisserver.DefaultProgram || store == "valkey-server"
}

// close ends the Redis if it is the demo's own.
func (s *demoStorage) close() error {
	if s.own == nil {
		return nil
	}
	return s.own.Close()
}
