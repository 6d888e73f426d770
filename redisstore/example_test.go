package redisstore_test

import (
	"fmt"

	"github.com/headgate-io/headgate/redisstore"
)

// What a URL says: the Config can be completed with a Secret, say, and passed to New.
func ExampleParseURL() {
	cfg, err := redisstore.ParseURL("redis+sentinel://s1,s2:26380/mymaster/2?timeout=150ms")
	fmt.Println(cfg.Addrs, cfg.Master, cfg.DB, cfg.Timeout, err)
	// Output: [s1:26379 s2:26380] mymaster 2 150ms <nil>
}
