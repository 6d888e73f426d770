// Package testservers starts real servers for tests: Redis alone, under Sentinel and as a Cluster, PostgreSQL, MariaDB, and
// nginx. Every server runs on free ports of the loopback in a folder of its own, and is ended by its handle when the test ends; on Linux it
// also dies with the test process. No server here leaves a goroutine behind, so a leak check needs no exceptions.
//
//	func TestTake(t *testing.T) {
//		srv := testservers.Redis(t)
//		client := dial(srv.Addr())
//		…
//		srv.Pause() // as a stopped or unreachable server
//	}
//
// A [Proxy] stands between a client and a server and spoils what passes; [FakeTime] gives a Redis a clock that can be set.
//
// A server that all tests of a package share is made with [Share]. Where a server's program is missing, a test is skipped
// with the command that installs it; with CI=true in the environment it fails.
package testservers
