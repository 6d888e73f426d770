package main

import (
	"errors"

	"github.com/headgate-io/headgate/internal/testservers"
)

// fourLimits are of four algorithms and never deny here.
func fourLimits() []string {
	return []string{benchLimit, "fixed_window 1000000000/1h", "sliding_window 1000000000/1m cells=6", "leaky_bucket 1/1m capacity=1000000"}
}

func severalLimits() section {
	const callers = 128
	return section{
		Name: "several", Title: "Several limits in one take, on Redis, 128 concurrent callers",
		notes: "token_bucket, fixed_window, sliding_window with 6 cells and leaky_bucket, on one key. A request is one take of one limit, one take of " +
			"four, or four takes of one after the other. (n×) is how many times worse than one limit.",
		columns: redisColumns(),
		open: func(tb testservers.TB) ([]contender, error) {
			server := testservers.Redis(tb)
			one, err1 := openHeadgateLimits(server, "one limit", benchLimit)
			four, err2 := openHeadgateLimits(server, "four limits, one take", fourLimits()...)
			apart, err3 := openFourTakes(server)
			var list []contender
			for _, c := range []checker{one, four, apart} {
				list = append(list, redisContender(server, c, callers))
			}
			return list, errors.Join(err1, err2, err3)
		},
	}
}

// openFourTakes asks for the same four limits one by one.
func openFourTakes(server *testservers.RedisServer) (checker, error) {
	var parts []checker
	var err error
	for _, limit := range fourLimits() {
		c, failed := openHeadgateLimits(server, "", limit)
		parts, err = append(parts, c), errors.Join(err, failed)
	}
	return checker{name: "four takes", worker: func() check {
		var checks []check
		for _, p := range parts {
			checks = append(checks, p.worker())
		}
		return func(i int) error {
			for _, c := range checks {
				if err := c(i); err != nil {
					return err
				}
			}
			return nil
		}
	}, close: func() (err error) {
		for _, p := range parts {
			err = errors.Join(err, p.close())
		}
		return err
	}}, err
}
