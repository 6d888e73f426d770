package app

import (
	"context"
	"fmt"
	"log/slog"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// StoreConfig says which store to open.
type StoreConfig struct {
	URL StoreURL
	// Namespace keeps users of one Redis apart; by default DefaultNamespace. Memory needs none.
	Namespace string
	// Log gets what goes wrong; nil discards it.
	Log *slog.Logger
}

// DefaultNamespace is where keys lie when nothing else is said.
const DefaultNamespace = "headgate"

// Store is an open store. Close it after the last take.
type Store struct {
	headgate.Limiter
	// Name can be shown to anybody.
	Name string
	// Remote tells that the store can be lost while this process lives.
	Remote bool
	close  func() error
}

// Close gives back what the store holds.
func (s *Store) Close() error { return s.close() }

// OpenStore opens a store, and reaches out to it if it is a remote one.
func OpenStore(ctx context.Context, cfg StoreConfig) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Namespace == "" {
		cfg.Namespace = DefaultNamespace
	}
	if cfg.URL.Kind == StoreMemory || cfg.URL.Kind == "" {
		mem := memstore.New(memstore.Config{Logger: cfg.Log})
		return &Store{Limiter: mem, Name: cfg.URL.String(), close: mem.Close}, nil
	}
	s, err := openRedis(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", cfg.URL, err)
	}
	return s, nil
}
