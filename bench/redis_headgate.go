package main

import (
	"context"
	"errors"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
)

func openHeadgateRedis(server *testservers.RedisServer, _ int) (checker, error) {
	return openHeadgateLimits(server, "Headgate redisstore", benchLimit)
}

// openHeadgateLimits prepares takes of all these limits together. The time-out is far off, so that a machine that stalls
// ends no comparison; it is not on the path that is measured.
func openHeadgateLimits(server *testservers.RedisServer, name string, limits ...string) (checker, error) {
	store, err := redisstore.New(context.Background(), redisstore.Config{Addrs: []string{server.Addr()}, Timeout: 5 * time.Second})
	if err != nil {
		return checker{}, err
	}
	c, err := headgateChecks(store, keys(redisKeys), limits...)
	if err != nil {
		return checker{}, errors.Join(err, store.Close())
	}
	c.name, c.close = name, store.Close
	return c, nil
}
