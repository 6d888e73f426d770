// Package headgate limits what a service is asked to do: exactly, on one machine or on Redis, with several limits of
// different algorithms decided together or not at all.
//
// Its words: a [Limit] is an algorithm with its numbers, a [Charge] asks for some of it on a key, a take asks to pay a
// list of charges, all or nothing, and a [Decision] with an [Outcome] for each charge is the answer.
//
//	store := memstore.New(memstore.Config{})
//	defer store.Close()
//	ok, err := headgate.Allow(ctx, store, headgate.MustParseLimit("token_bucket 10/s burst=20"), "203.0.113.9")
//
// This package has the words and no behaviour: it imports the standard library only. Where the rest is:
//
//   - algo: the algorithms as pure functions
//   - memstore, redisstore: the stores that run them
//   - policy: rules in YAML, compiled to charges
//   - middleware/nethttpmw, gateway: fronts that apply a policy to HTTP
//   - testlang, limitertest: the language that limits are tested in, and the suite that every store passes
//
// docs/architecture.md follows a request through them.
package headgate
