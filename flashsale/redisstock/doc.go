// Package redisstock is the stock of a flash sale in Redis: on one node, under Sentinel, or on a Cluster, for any number of processes
// at once. Every call is one script, and so one atomic step; what is kept, and how, stands in lua/head.lua.
//
//	stock, err := redisstock.New(ctx, redisstock.Config{Addrs: []string{"127.0.0.1:6379"}})
//	if err != nil { … }
//	defer stock.Close()
//	if err := stock.Check(ctx); err != nil { … } // that this Redis keeps what it is given
//
// Give it a Redis of its own: noeviction, an append-only file, memory for about 500 bytes a reservation. Nothing that counts has a
// time to live. All keys of a sku have one hash tag, and so lie on one node; different skus are spread over a Cluster.
//
// # Failures
//
// Nothing is sent twice by itself. A call without an answer is [flashsale.CodeUnavailable] and may have run; every call can be
// repeated and runs once. A failover or a restart shows as another Run in the View. When Redis is out of memory, reserve calls fail
// and jobs are still handed out and acknowledged, so that a queue is worked off.
package redisstock
