package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/redis/rueidis"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/headgate-io/headgate/resilience"
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
	// Watch is told of a remote store's calls and of its breakers; the zero value tells nobody.
	Watch StoreWatch
}

// StoreWatch is who is told of a remote store.
type StoreWatch struct {
	Calls    redisstore.Observer
	Breakers resilience.BreakerObserver
	// Keys is told how many keys a store in memory has; the store itself, or the one that takes its place.
	Keys memstore.Observer
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
	// remote is the store as the fleet and the breakers see it; nil if it is in memory.
	remote remoteStore
	// breakers are those of its nodes; nil if it is in memory.
	breakers *resilience.Breakers
	// connect makes another connection to the same Redis; nil if the store is none.
	connect func(context.Context) (rueidis.Client, error)
}

// remoteStore is what a store on Redis can do beside deciding takes.
type remoteStore interface {
	resilience.Board
	Probe(ctx context.Context, node string) error
}

// Reached tells whether the store has been reached at some time.
func (s *Store) Reached() bool { return s.reached == nil || s.reached() }

// Lost tells that the store, or a node of it, is not asked at the moment: it has not been reached yet, or a breaker is open.
func (s *Store) Lost() bool { return !s.Reached() || s.breakers != nil && s.breakers.Lost() }

// gone tells that no node of the store is asked at the moment, as far as they are known.
func (s *Store) gone() bool {
	if s.breakers == nil || !s.breakers.Lost() {
		return false
	}
	return !slices.ContainsFunc(s.breakers.States(), func(n resilience.NodeState) bool { return !n.Open })
}

// whyLost says in a few words what is lost.
func (s *Store) whyLost() string {
	if !s.Reached() {
		return "the store has not been reached yet"
	}
	if s.breakers != nil {
		for _, node := range s.breakers.States() {
			if node.Open {
				return "node " + node.Node + ": " + node.Why
			}
		}
	}
	return "the store does not answer"
}

// Close gives back what the store holds.
func (s *Store) Close() error {
	if s.breakers != nil {
		return errors.Join(s.breakers.Close(), s.close())
	}
	return s.close()
}

// OpenStore opens a store, and reaches out to it if it is a remote one.
func OpenStore(ctx context.Context, cfg StoreConfig) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.URL.redis == nil {
		mem := memstore.New(memstore.Config{Logger: cfg.Log, Observer: cfg.Watch.Keys})
		return &Store{Limiter: mem, Name: cfg.URL.String(), close: mem.Close}, nil
	}
	s, err := openRedis(ctx, cfg)
	if err != nil {
		return nil, storeError("store "+cfg.URL.String(), err)
	}
	return s, nil
}
