package redisstore_test

import (
	"context"
	"fmt"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/redisstore"
)

// A service that shares its limits with all its instances.
func ExampleOpen() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, "redis://127.0.0.1:6379?namespace=shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	limit := headgate.MustParseLimit("token_bucket 10/s burst=20")
	allowed, err := headgate.Allow(ctx, store, limit, "203.0.113.9")
	fmt.Println(allowed, err)
}

// A cluster with TLS, and a secret that keeps anybody from choosing the shard of a key.
func ExampleNew() {
	store, err := redisstore.New(context.Background(), redisstore.Config{
		Addrs:   []string{"redis-0:6379", "redis-1:6379"},
		Cluster: true,
		Secret:  "from the environment",
		Timeout: 100 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = store.Close()
}

// What a URL says, completed with what does not belong in one.
func ExampleParseURL() {
	cfg, err := redisstore.ParseURL("redis+sentinel://s1,s2:26380/mymaster/2?timeout=150ms")
	cfg.Secret = "from the environment"
	fmt.Println(cfg.Addrs, cfg.Master, cfg.DB, cfg.Timeout, err)
	// Output: [s1:26379 s2:26380] mymaster 2 150ms <nil>
}
