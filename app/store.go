package app

import (
	"context"
	"log/slog"

	"github.com/redis/rueidis"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// StoreConfig says which store to open.
type StoreConfig struct {
	URL StoreURL
	// Namespace keeps users of one Redis apart; by default what the URL says, else DefaultNamespace. Memory needs none.
	Namespace string
	// Secret keys the choice of a shard; by default the namespace's name. All instances of a namespace need the same.
	Secret string
	// SentinelUsername and SentinelPassword are for the sentinels themselves; by default none.
	SentinelUsername, SentinelPassword string
	// MayBeAway opens a remote store that cannot be reached all the same: until it can be, which is tried every second, it
	// fails at once. One that is reached and refuses, such as for a wrong password, is an error in any case.
	MayBeAway bool
	// Log gets what goes wrong; nil discards it.
	Log *slog.Logger
}

// DefaultNamespace is where keys lie when nothing else is said.
const DefaultNamespace = "headgate"

// Store is an open store. Close it after the last take.
type Store struct {
	headgate.Limiter
	// Name says which store it is, with its namespace, and can be shown to anybody.
	Name string
	// Remote tells that the store can be lost while this process lives.
	Remote  bool
	reached func() bool
	close   func() error
	// connect makes another connection to the same Redis; nil if the store is none.
	connect func(context.Context) (rueidis.Client, error)
}

// Reached tells whether the store has been reached at some time.
func (s *Store) Reached() bool { return s.reached == nil || s.reached() }

// Close gives back what the store holds.
func (s *Store) Close() error { return s.close() }

// OpenStore opens a store, and reaches out to it if it is a remote one.
func OpenStore(ctx context.Context, cfg StoreConfig) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.URL.redis == nil {
		mem := memstore.New(memstore.Config{Logger: cfg.Log})
		return &Store{Limiter: mem, Name: cfg.URL.String(), close: mem.Close}, nil
	}
	s, err := openRedis(ctx, cfg)
	if err != nil {
		return nil, storeError("store "+cfg.URL.String(), err)
	}
	return s, nil
}
