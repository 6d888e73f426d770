// Package leasestore decides in memory what another limiter has been charged for already.
//
// A [Store] is a headgate.Limiter over any other, the upstream: a Redis that many instances share. It charges units there ahead of
// the requests, a lease, and spends them with an atomic addition. Everything admitted was charged before, so the limit is the
// upstream's, however many instances spend leases of it; one that crashes loses what it had in hand, and admits nothing more.
//
//	store, err := redisstore.New(ctx, redisstore.Config{Addrs: addrs})
//	…
//	leased := leasestore.New(store, leasestore.Config{})
//	defer leased.Close() // before the store: it gives back what is unspent
//
// How many units a lease has follows the demand: an instance holds no more than what it was asked for within the last 100 ms, and
// nothing of it for longer than a second. So where the load is, the quota is. Near the end of a limit an instance takes what
// remains, asks again every 5 ms, and denies in between. docs/leases.md says what is exact and what the bounds are.
//
// Only limits whose charges are alike can be leased, see [CanLease]; charges of others, and those with a lockout, go to the
// upstream as they are.
package leasestore
