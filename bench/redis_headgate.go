package main

import (
	"errors"

	"github.com/headgate-io/headgate/internal/testservers"
)

func openHeadgateRedis(server *testservers.RedisServer, _ int) (checker, error) {
	return openHeadgateLimits(server, "Headgate redisstore", benchLimit)
}

func openHeadgateLimits(_ *testservers.RedisServer, name string, _ ...string) (checker, error) {
	return checker{name: name}, errors.New("redisstore is not there yet")
}
