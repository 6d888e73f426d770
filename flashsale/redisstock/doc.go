// Package redisstock is the stock of a flash sale in Redis: on one node, under Sentinel, or on a Cluster, for any number of processes
// at once. Every call is one script, and so one atomic step; what is kept, and how, stands in lua/head.lua.
//
//	stock, err := redisstock.New(ctx, redisstock.Config{Addrs: []string{"127.0.0.1:6379"}})
//	if err != nil { … }
//	defer stock.Close()
//	if err := stock.Check(ctx); err != nil { … } // that this Redis keeps what it is given
//
// Give it a Redis of its own: noeviction, an append-only file, memory for about 400 bytes a reservation, and 64 MiB for the log of refusals
// ([Config].MaxRefusalBytes), which gives way where memory is short. Nothing that counts has a time to live; the keys of a sku that is closed go a day later, when the engine removes them. All keys of a sku have one hash tag, and so lie on one node; different skus are spread over a
// Cluster. The two keys of the log of refusals have a hash tag of their own.
//
// # What a reserve costs
//
// Calls of one sku that come while another is on the wire go together, up to 128 in one script: by itself a script takes as long as 5 more
// reserves in it. With 128 callers, about 50 went together, and one took 7 to 8 µs of Redis's processor, append-only file and all, where the
// DECR and SET NX EX of tutorials took 6 to 8 in the same run (BenchmarkReserve and BenchmarkPair, two busy processors). Of that
// about a third each is the look-ups in the two hashes, Lua itself, and the rest. What made the difference was to read and to write
// each hash in one command for all; an index of deadlines with a member for each call and not for each reservation, which saves 1.5 µs;
// and values packed by the caller. The job's own XADD costs 1.7 µs. A list would take a tenth of that, but it knows nothing of
// consumers, deliveries and acknowledgements.
//
// # Failures
//
// Nothing is sent twice by itself. A call without an answer is [flashsale.CodeUnavailable] and may have run; every call can be
// repeated and runs once. A failover or a restart shows as another Run in the View. When Redis is out of memory, reserve calls fail
// and jobs are still handed out and acknowledged, so that a queue is worked off.
package redisstock
