package resilience

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
)

// TestFleetOnRedis: three instances on one Redis. A switch that a hand turns on one is in force on all, one that is killed
// is not counted after a while, and when Redis is killed the last that was known stays.
func TestFleetOnRedis(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t)
	var all []instance
	for i := range 3 {
		store, err := redisstore.New(t.Context(), redisstore.Config{Addrs: []string{srv.Addr()}, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		fleet := NewFleet(store, FleetConfig{ID: fmt.Sprint("instance ", i), Every: 500 * time.Millisecond, TTL: 3 * time.Second})
		t.Cleanup(func() { _ = fleet.Close() })
		in := start(t, nil, "", func(c *LevelsConfig) { c.Fleet = fleet })
		in.fleet = fleet
		all = append(all, in)
	}
	for _, in := range all {
		await(t, "three live", func() bool { return in.fleet.Live() == 3 })
	}

	all[0].turn(t, LevelRestricted, true, "the sale has begun")
	all[0].turn(t, LevelDeviceLifted, true, `"<devices>" & others`)
	for _, in := range all {
		await(t, "switched everywhere", func() bool { return in.Restricted() && in.DeviceLifted() })
	}
	if s := all[2].Switches(); s[2].Why != "the sale has begun" || s[1].Why != `"<devices>" & others` || s[1].By != ByHand {
		t.Errorf("%+v", s)
	}
	all[2].turn(t, LevelDeviceLifted, false, "enough")
	await(t, "switched off everywhere", func() bool { return !all[0].DeviceLifted() && !all[1].DeviceLifted() })

	all[2].fleet.stop() // without a word
	for _, in := range all[:2] {
		await(t, "two live", func() bool { return in.fleet.Live() == 2 })
	}

	srv.Kill()
	all[1].turn(t, LevelRestricted, false, "over")
	if s := all[1].Switches()[2]; s.On || !s.Pending {
		t.Errorf("switched while Redis is away: %+v", s)
	}
	await(t, "aged", func() bool { return all[0].fleet.Age() > 1500*time.Millisecond })
	if n := all[0].fleet.Live(); n != 2 {
		t.Errorf("%d live, two were known last", n)
	}
	if err := srv.Restart(testservers.Empty); err != nil {
		t.Fatal(err)
	}
	await(t, "the switch was sent", func() bool { return !all[0].Restricted() && !all[1].Switches()[2].Pending })
	if n := all[0].fleet.Live(); n != 2 {
		t.Errorf("%d live on a Redis that has come back empty", n)
	}
	if err := all[1].fleet.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "one lives", func() bool { return all[0].fleet.Live() == 1 })
}
