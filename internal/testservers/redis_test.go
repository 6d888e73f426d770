package testservers

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func mustDo(t *testing.T, s *RedisServer, args ...any) any {
	t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return answer
}

func expect(t *testing.T, s *RedisServer, want any, args ...any) {
	t.Helper()
	if got := mustDo(t, s, args...); got != want {
		t.Fatalf("%v: got %v, want %v", args, got, want)
	}
}

func TestRedisAnswersEveryKindOfValue(t *testing.T) {
	t.Parallel()
	s := Redis(t)
	expect(t, s, "OK", "SET", "k", "a\r\nb")
	expect(t, s, "a\r\nb", "GET", "k")
	expect(t, s, nil, "GET", "absent")
	expect(t, s, int64(1), "DEL", "k")
	list, _ := mustDo(t, s, "EVAL", "return {1, 'two', {3}, redis.error_reply('BAD x'), false}", 0).([]any)
	if len(list) != 5 || list[0] != int64(1) || list[1] != "two" || list[3] != RedisError("BAD x") || list[4] != nil {
		t.Fatalf("got %v", list)
	}
	var refused RedisError
	if _, err := s.Do("NOSUCH"); !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), "ERR unknown command") {
		t.Fatalf("got %v", err)
	}
	if got := s.URL(); got != "redis://"+s.Addr() {
		t.Fatalf("URL is %s", got)
	}
}

func TestRedisIsEndedWithTheTest(t *testing.T) {
	t.Parallel()
	var s *RedisServer
	t.Run("inner", func(t *testing.T) { s = Redis(t) })
	if status, ended := s.Exited(); !ended || status != "signal: killed" {
		t.Fatalf("after the test: %q, ended %v", status, ended)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Fatalf("the folder is still there: %v", err)
	}
	if c, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Fatalf("something still listens: %v", c.Close())
	}
}

func TestRedisPauseAndResume(t *testing.T) {
	t.Parallel()
	s := Redis(t)
	c, err := dial(s.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := c.net.SetDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if answer, err := c.do("PING"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("paused, it answers %v, %v", answer, err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "PONG", "PING")
}

func TestRedisRestart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options   []RedisOption
		killFirst bool
		data      Data
		want      any
	}{
		"snapshot":              {nil, false, KeepData, "v"},
		"append-only and crash": {[]RedisOption{AppendOnly()}, true, KeepData, "v"},
		"append-only, emptied":  {[]RedisOption{AppendOnly()}, false, Empty, nil},
		"crash without a file":  {nil, true, KeepData, nil},
		"emptied":               {nil, false, Empty, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Redis(t, tc.options...)
			addr := s.Addr()
			expect(t, s, "OK", "SET", "k", "v")
			if tc.killFirst {
				s.Kill()
				if err := s.Pause(); err == nil {
					t.Fatal("a dead server was paused")
				}
			}
			if err := s.Restart(tc.data); err != nil {
				t.Fatal(err)
			}
			expect(t, s, tc.want, "GET", "k")
			if s.Addr() != addr {
				t.Fatalf("the address changed from %s to %s", addr, s.Addr())
			}
		})
	}
}

func TestRedisACL(t *testing.T) {
	t.Parallel()
	s := Redis(t, ACL("gate", "s3cret", "~g:*", "+@all", "-flushall"))
	if want := "redis://gate:s3cret@" + s.Addr(); s.URL() != want {
		t.Fatalf("URL is %s, want %s", s.URL(), want)
	}
	for _, tc := range []struct {
		user, password, command, want string
	}{
		{"", "", "DBSIZE", "NOAUTH"},
		{"gate", "wrong", "DBSIZE", "WRONGPASS"},
		{"gate", "s3cret", "FLUSHALL", "NOPERM"},
		{"gate", "s3cret", "DBSIZE", ""},
	} {
		if got := asUser(t, s, tc.user, tc.password, tc.command); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
			t.Errorf("%s as %q with %q: got error %q, want %q", tc.command, tc.user, tc.password, got, tc.want)
		}
	}
	expect(t, s, "OK", "FLUSHALL") // the test itself may
}

func TestRedisBarePassword(t *testing.T) {
	t.Parallel()
	s := Redis(t, ACL("default", "pw"))
	if got := asUser(t, s, "", "", "DBSIZE"); !strings.HasPrefix(got, "NOAUTH") {
		t.Fatalf("without a password: %q", got)
	}
	if got := asUser(t, s, "default", "pw", "DBSIZE"); got != "" {
		t.Fatalf("with the password: %q", got)
	}
}

// asUser returns the error of a command, "" if there is none.
func asUser(t *testing.T, s *RedisServer, user, password, command string) string {
	t.Helper()
	c, err := dial(s.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if user != "" {
		if _, err := c.do("AUTH", user, password); err != nil {
			return err.Error()
		}
	}
	if _, err := c.do(command); err != nil {
		return err.Error()
	}
	return ""
}

func TestRedisTLS(t *testing.T) {
	t.Parallel()
	s := Redis(t, TLS())
	expect(t, s, "PONG", "PING")
	if !strings.HasPrefix(s.URL(), "rediss://") {
		t.Fatalf("URL is %s", s.URL())
	}
	stranger := s.TLSConfig()
	stranger.RootCAs = nil
	if _, err := dial(s.Addr(), stranger); err == nil {
		t.Fatal("a client that does not know the authority trusts the server")
	}
}

func TestRedisMutualTLS(t *testing.T) {
	t.Parallel()
	s := Redis(t, MutualTLS())
	expect(t, s, "PONG", "PING")
	bare := s.TLSConfig()
	bare.Certificates = nil
	c, err := dial(s.Addr(), bare)
	if err == nil { // with TLS 1.3 the client learns of the refusal when it reads
		_, err = c.do("PING")
	}
	if err == nil {
		t.Fatal("a client without a certificate is served")
	}
}

func TestRedisMaxMemory(t *testing.T) {
	t.Parallel()
	s := Redis(t, MaxMemory("3mb"))
	big := strings.Repeat("x", 1<<20)
	for i := range 8 {
		if _, err := s.Do("SET", i, big); err != nil {
			if !strings.HasPrefix(err.Error(), "OOM") {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("8 MB fit into 3 MB")
}

func TestRedisThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	var scope Scope
	defer scope.Close()
	err := scope.Start(func(tb TB) { Redis(tb, Directives("no-such-directive 1")) })
	if err == nil || !strings.Contains(err.Error(), "no-such-directive") || !strings.Contains(err.Error(), "exit status 1") {
		t.Fatalf("got %v", err)
	}
}

func TestMissingProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		ci   string
		skip bool
	}{"developer": {"", true}, "CI": {"true", false}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CI", tc.ci)
			var scope Scope
			err := scope.Start(func(tb TB) { Need(tb, "no-such-server") })
			if err == nil || errors.Is(err, ErrSkipped) != tc.skip || !strings.Contains(err.Error(), installCommand) {
				t.Fatalf("got %v", err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join("..", "..", installCommand)); err != nil {
		t.Errorf("the hint names a script that is not there: %v", err)
	}
}

func TestShared(t *testing.T) {
	t.Parallel()
	starts := 0
	shared := Share(func(tb TB) *RedisServer {
		starts++
		return Redis(tb)
	})
	defer shared.Close()
	first := shared.Get(t)
	t.Run("inner", func(t *testing.T) { expect(t, shared.Get(t), "PONG", "PING") })
	expect(t, first, "PONG", "PING") // it outlives the inner test
	if starts != 1 {
		t.Fatalf("started %d times", starts)
	}
	shared.Close()
	if _, ended := first.Exited(); !ended {
		t.Fatal("it runs on after Close")
	}
}
