package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

// saleCallers is how many shoppers reserve at a time.
const saleCallers = 128

// endless is a total that no comparison sells out.
const endless = flashsale.MaxTotal

var saleKey = flashsale.Key{Sale: "bench", SKU: "phone"}

func saleStock() section {
	return section{
		Name: "salestock", Title: fmt.Sprintf("A flash sale's reserve call on Redis, one sku, %d concurrent callers", saleCallers),
		notes: "A reserve checks the token's id, the opening times, the purchase limit and the stock, takes a unit, and appends the job to the queue, in one " +
			"step; every call is another user. The pair is what tutorials do instead, `SET user 1 NX EX` and `DECR stock`, in one pipeline of the same client " +
			"with the same callers: it has no queue, no deadline and no answer for a repeated call. Redis CPU is what the server itself counts, and the " +
			"callers share its machine. (n×) is how many times worse than Headgate without an append-only file.",
		columns: []column{
			{"reserves/s", higher, 0}, {"Redis CPU µs per reserve", lower, 2}, {"commands per reserve", "", 3}, {"p50 µs", lower, 0}, {"p99 µs", lower, 0},
		},
		open: func(tb testservers.TB) ([]contender, error) {
			plain, file := testservers.Redis(tb), testservers.Redis(tb, testservers.AppendOnly())
			var list []contender
			for _, c := range []struct {
				name   string
				server *testservers.RedisServer
				open   func(*testservers.RedisServer) (checker, func() error, error)
			}{
				{"Headgate redisstock", plain, openRedisStock}, {"SET NX EX + DECR", plain, openPair},
				{"Headgate redisstock, append-only file", file, openRedisStock}, {"SET NX EX + DECR, append-only file", file, openPair},
			} {
				check, empty, err := c.open(c.server)
				if err != nil {
					return list, err
				}
				check.name = c.name
				list = append(list, emptied(redisContender(c.server, check, saleCallers), empty))
			}
			return list, nil
		},
	}
}

// emptied has a contender begin every try with an empty sale, so that the last ones do not pay for what the first ones have left.
func emptied(c contender, empty func() error) contender {
	try := c.try
	c.try = func(d time.Duration) ([]float64, error) {
		if err := empty(); err != nil {
			return nil, err
		}
		return try(d)
	}
	return c
}

func openRedisStock(server *testservers.RedisServer) (checker, func() error, error) {
	ctx := context.Background()
	stock, err := redisstock.New(ctx, redisstock.Config{Addrs: []string{server.Addr()}, Timeout: 10 * time.Second})
	if err != nil {
		return checker{}, nil, err
	}
	var number atomic.Int64
	body := flashsale.BodyHash(saleKey, "user", 1)
	worker := func() check {
		ask := flashsale.Ask{Quantity: 1, Body: body}
		return func(int) error {
			n := strconv.FormatInt(1e13+number.Add(1), 10)
			ask.RID, ask.User = "rid-8-901"+n[1:], "user"+n // 22 and 18 bytes
			answer, err := stock.Reserve(ctx, saleKey, 1, &ask)
			return allowed(answer.Accepted, err)
		}
	}
	empty := func() error {
		if _, err := server.Do("FLUSHALL"); err != nil {
			return err
		}
		_, err := stock.Point(ctx, saleKey, 1)
		now := time.Now()
		settings := flashsale.Settings{
			Version: 1, Status: flashsale.Open, OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(24 * time.Hour), PurchaseLimit: 1, Rate: flashsale.MaxRate,
		}
		return errors.Join(err, stock.Load(ctx, saleKey, 1, &flashsale.LoadPart{Last: true, Total: endless}), stock.Configure(ctx, saleKey, 1, &settings))
	}
	return checker{worker: worker, close: stock.Close}, empty, nil
}

func openPair(server *testservers.RedisServer) (checker, func() error, error) {
	ctx := context.Background()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, DisableCache: true, DisableRetry: true, PipelineMultiplex: 1, ForceSingleClient: true,
		ClientSetInfo: rueidis.DisableClientSetInfo, ReadBufferEachConn: 64 << 10, WriteBufferEachConn: 64 << 10,
	})
	if err != nil {
		return checker{}, nil, err
	}
	var number atomic.Int64
	worker := func() check {
		return func(int) error {
			user := "bench:user:" + strconv.FormatInt(1e13+number.Add(1), 10)
			answers := client.DoMulti(ctx, client.B().Set().Key(user).Value("1").Nx().ExSeconds(900).Build(), client.B().Decr().Key("bench:stock").Build())
			left, err := answers[1].AsInt64()
			return allowed(left >= 0, errors.Join(answers[0].Error(), err))
		}
	}
	empty := func() error {
		_, err := server.Do("FLUSHALL")
		_, err2 := server.Do("SET", "bench:stock", endless)
		return errors.Join(err, err2)
	}
	return checker{worker: worker, close: func() error { client.Close(); return nil }}, empty, nil
}
