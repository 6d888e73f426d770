package redisstore

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/redis/rueidis"
)

func cpuOf(srv *testservers.RedisServer) float64 {
	info, _ := srv.Info("cpu")
	u, _ := strconv.ParseFloat(info["used_cpu_user_main_thread"], 64)
	s, _ := strconv.ParseFloat(info["used_cpu_sys_main_thread"], 64)
	return 1e6 * (u + s)
}

func TestMicro(t *testing.T) {
	if os.Getenv("MICRO") == "" {
		t.Skip()
	}
	srv := testservers.Redis(t)
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true, ForceSingleClient: true, ConnWriteTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	sc := newScripts()
	names := newNamer("headgate", "")
	run := func(name string, size int, ops int, cmds func(i int) rueidis.Completed) {
		const rounds = 40
		best := 1e18
		for r := 0; r < 3; r++ {
			before := cpuOf(srv)
			for i := 0; i < rounds; i++ {
				var multi []rueidis.Completed
				for j := 0; j < 16; j++ {
					multi = append(multi, cmds(i*16+j))
				}
				for _, resp := range c.DoMulti(ctx, multi...) {
					if err := resp.Error(); err != nil && !rueidis.IsRedisNil(err) {
						t.Fatal(err)
					}
				}
			}
			us := (cpuOf(srv) - before) / float64(rounds*16*ops)
			best = min(best, us)
		}
		fmt.Printf("%-40s %6.2f µs/op\n", name, best)
	}
	key := func(i int) string { return names.name(keyState, "login/0", "user"+strconv.Itoa(i%10000)) }
	run("SET px", 1, 1, func(i int) rueidis.Completed {
		return c.B().Arbitrary("SET").Keys(key(i)).Args("12345678901234567890", "PX", "1000000").Build()
	})
	build := func(size int, texts ...string) func(i int) rueidis.Completed {
		var limits []headgate.Limit
		for _, x := range texts {
			limits = append(limits, headgate.MustParseLimit(x))
		}
		w := calendars{}
		return func(i int) rueidis.Completed {
			b := newBatch()
			for j := 0; j < size; j++ {
				var ch []headgate.Charge
				for li, l := range limits {
					h := headgate.One("login/"+strconv.Itoa(li), "user"+strconv.Itoa((i*size+j)*7919%10000), l)
					h.Holder = "h"
					ch = append(ch, h)
				}
				o := newOp()
				o.script = sc.take
				o.load(names, ch)
				b.ops = append(b.ops, o)
			}
			keys, arg := b.build(w.bounds)
			return c.B().Evalsha().Sha1(sc.take.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(string(arg)).Build()
		}
	}
	if os.Getenv("MICRO") == "3" {
		base := sc.take.text
		four := []string{"token_bucket 100/s burst=200", "fixed_window 100/10s", "sliding_window 100/10s", "leaky_bucket 100/s capacity=200"}
		try := func(name, from, to string) {
			if !strings.Contains(base, from) {
				t.Fatal(name)
			}
			sc.take = newScript("take", strings.Replace(base, from, to, 1))
			if err := c.Do(ctx, c.B().ScriptLoad().Script(sc.take.text).Build()).Error(); err != nil {
				t.Fatal(err)
			}
			run(name+" four x32", 32, 32, build(32, four...))
			run(name+" one x32", 32, 32, build(32, four[0]))
		}
		for r := 0; r < 2; r++ {
			try("base", "local call", "local call")
			try("return at once", "local general = ", "if true then return 'a' end local general = ")
			try("no mget", "if strings > 0 then S = call('MGET', unpack(K, 1, strings)) end", "S={} if true then return 'a' end")
			try("after mget", "local W, writes = {}, 0", "if true then return 'a' end local W, writes = {}, 0")
			try("after limits", "local P, L = {}, {}", "if true then return 'a' end local P, L = {}, {}")
			try("no take loop", "for _ = 1, takes do\n  local n, plain", "for _ = 1, 0 do\n  local n, plain")
			try("no flush", "\nflush()", "\n")
		}
		return
	}
	if err := c.Do(ctx, c.B().ScriptLoad().Script(sc.take.text).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("MICRO") == "2" {
		lua := func(name, text string) {
			sha, err := c.Do(ctx, c.B().ScriptLoad().Script(text).Build()).ToString()
			if err != nil {
				t.Fatal(err)
			}
			run(name, 32, 32, func(i int) rueidis.Completed {
				keys := []string{}
				for j := 0; j < 32; j++ {
					keys = append(keys, key((i*32+j)*7919%10000))
				}
				return c.B().Evalsha().Sha1(sha).Numkeys(32).Key(keys...).Arg("12345678901234567890").Build()
			})
		}
		lua("return", "return 1")
		lua("time", "redis.call('TIME') return 1")
		lua("mget", "redis.call('MGET', unpack(KEYS)) return 1")
		lua("mget+set", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=ARGV[1] for i=1,32 do c('SET', KEYS[i], v, 'PX', '1000000') end return 1")
		lua("mget+set no px", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=ARGV[1] for i=1,32 do c('SET', KEYS[i], v) end return 1")
		lua("mget+psetex", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=ARGV[1] for i=1,32 do c('PSETEX', KEYS[i], '1000000', v) end return 1")
		lua("mget+set get", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=ARGV[1] for i=1,32 do c('SET', KEYS[i], v, 'PX', '1000000', 'GET') end return 1")
		lua("mget+mset", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=ARGV[1] local a={} for i=1,32 do a[2*i-1]=KEYS[i] a[2*i]=v end c('MSET', unpack(a)) return 1")
		lua("mget+set keepttl", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=ARGV[1] for i=1,32 do c('SET', KEYS[i], v, 'KEEPTTL') end return 1")
		lua("mget+setrange", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=ARGV[1] for i=1,32 do c('SETRANGE', KEYS[i], '0', v) end return 1")
		lua("mget+setrange tail", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=string.sub(ARGV[1],1,7) for i=1,32 do c('SETRANGE', KEYS[i], '13', v) end return 1")
		lua("mget+set pcall", "local c=redis.pcall local S=c('MGET', unpack(KEYS)) local v=ARGV[1] for i=1,32 do c('SET', KEYS[i], v, 'PX', '1000000') end return 1")
		lua("mget+pexpire", "local c=redis.call local S=c('MGET', unpack(KEYS)) local v=ARGV[1] for i=1,32 do c('PEXPIRE', KEYS[i], '1000000') end return 1")
		lua1 := func(name, text string) {
			sha, err := c.Do(ctx, c.B().ScriptLoad().Script(text).Build()).ToString()
			if err != nil {
				t.Fatal(err)
			}
			run("x1 "+name, 1, 1, func(i int) rueidis.Completed {
				return c.B().Evalsha().Sha1(sha).Numkeys(1).Key(key(i * 7919 % 10000)).Arg("12345678901234567890").Build()
			})
		}
		lua1("return", "return 1")
		lua1("time", "redis.call('TIME') return 1")
		lua1("time+mget", "redis.call('TIME') redis.call('MGET', KEYS[1]) return 1")
		lua1("time+mget+set", "redis.call('TIME') redis.call('MGET', KEYS[1]) redis.call('SET',KEYS[1],ARGV[1],'PX','1000000') return 1")
		lua1("20 closures", "local a,b,c,d,e,f,g,h=1,2,3,4,5,6,7,8 "+strings.Repeat("do local function x() return a+b+c+d+e+f+g+h end end ", 20)+" return 1")
		lua1("20 tables", strings.Repeat("do local x = {} end ", 20)+" return 1")
		return
	}
	for _, size := range []int{1, 16, 32, 64} {
		run("whole tokens x"+strconv.Itoa(size), size, size, build(size, "token_bucket 100/s burst=200"))
	}
	for _, x := range []string{"token_bucket 0.7/m burst=200", "fixed_window 1000/10s", "sliding_log 20/10s", "sliding_window 1000/10s", "sliding_window 1000/12s cells=6", "leaky_bucket 100/s capacity=200", "concurrency 10 ttl=10s"} {
		run(x+" x32", 32, 32, build(32, x))
	}
	run("four x32", 32, 32, build(32, "token_bucket 100/s burst=200", "fixed_window 100/10s", "sliding_window 100/10s", "leaky_bucket 100/s capacity=200"))
	run("four x16", 16, 16, build(16, "token_bucket 100/s burst=200", "fixed_window 100/10s", "sliding_window 100/10s", "sliding_log 20/10s"))
	run("SET px", 1, 1, func(i int) rueidis.Completed {
		return c.B().Arbitrary("SET").Keys(key(i)).Args("12345678901234567890", "PX", "1000000").Build()
	})
}
