package redisstock_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []testservers.RedisOption
		want    []string // in the error; none: it is fine
	}{
		{"fine", []testservers.RedisOption{testservers.AppendOnly()}, nil},
		{
			"no sync", []testservers.RedisOption{testservers.AppendOnly(), testservers.Directives("appendfsync no")},
			[]string{"appendfsync is no", "everysec or always"},
		},
		{"no file", nil, []string{"append-only file", "appendonly yes"}},
		{
			"all wrong", []testservers.RedisOption{testservers.Directives("maxmemory 100mb", "maxmemory-policy allkeys-lru")},
			[]string{"append-only file", "maxmemory-policy is allkeys-lru", "noeviction"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := testservers.Redis(t, c.options...)
			err := open(t, redisstock.Config{Addrs: []string{srv.Addr()}}).Check(t.Context())
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range append(c.want, srv.Addr()) {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestCheckSeesAnotherClock(t *testing.T) {
	srv := testservers.Redis(t, testservers.AppendOnly(), testservers.FakeTime())
	s := open(t, redisstock.Config{Addrs: []string{srv.Addr()}})
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("with the machine's clock: %v", err)
	}
	// An answer that takes its time is of an earlier moment: the figure is less, never more.
	clock := regexp.MustCompile(`its clock is (\S+) from`)
	for _, ahead := range []time.Duration{time.Hour, -time.Minute} {
		if err := srv.SetClock(ahead); err != nil {
			t.Fatal(err)
		}
		err := s.Check(t.Context())
		said := clock.FindStringSubmatch(fmt.Sprint(err))
		if said == nil {
			t.Fatalf("%s ahead: %v", ahead, err)
		}
		if by, err := time.ParseDuration(said[1]); err != nil || by > ahead+time.Second || by < ahead-10*time.Minute {
			t.Errorf("%s ahead: it says %s", ahead, said[1])
		}
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []redisstock.Config{
		{Namespace: "a{b"}, {Namespace: strings.Repeat("n", 65)}, {Timeout: time.Microsecond}, {ConnectTimeout: -1}, {MaxBatch: 129}, {MaxBatch: -1},
		{MaxInFlight: -1}, {MaxQueue: -1}, {MaxCalls: -1}, {MaxDead: -1}, {Cluster: true, Master: "m"}, {DB: -1}, {Cluster: true, DB: 1},
	} {
		_, err := redisstock.New(t.Context(), cfg)
		if flashsale.CodeOf(err) != flashsale.CodeInvalidArgument {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
