// Package leaktest finds goroutines that the tests of a package leave behind, once the servers that they share have ended.
package leaktest

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, ends what they share, and returns the program's exit code, which is not 0 either if goroutines are
// left. The servers end first, unlike with [goleak.VerifyTestMain]: a client that is closed while it makes a connection may hold on to it
// until its server is gone.
func Main(m goleak.TestingM, shared func(), options ...goleak.Option) (code int) {
	code = m.Run()
	shared()
	if code != 0 {
		return code
	}
	if err := goleak.Find(options...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// RedisCluster lets what rueidis leaves of a cluster be: it closes connections of nodes that it does not use any more 5 s later, and looks
// at a cluster that failed a second later, in goroutines that nobody can end.
func RedisCluster() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	}
}
