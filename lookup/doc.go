// Package lookup finds values of dimensions that a client does not send: in a field of a Redis hash, or by asking an HTTP
// service. Its methods are what a policy takes for its look-ups:
//
//	tiers := lookup.NewRedis(client)
//	services := lookup.NewHTTP(lookup.HTTPConfig{})
//	defer services.Close()
//	engine, err := policy.NewEngine(p, store, policy.EngineConfig{
//		Lookups: policy.Lookups{HashField: tiers.HashField, HTTPGet: services.Get},
//	})
//
// A policy keeps what is found for a time, and bounds how many look-ups are under way; nothing is kept here. No error has in
// it what the key, the URL's path or its query said: they can name a person, or be secret.
package lookup
