// Package nethttpmw puts a policy in front of an [net/http.Handler].
//
//	limit, err := nethttpmw.New(decider, nethttpmw.Config{})
//	http.ListenAndServe(":8080", limit(mux))
//
// A request that the policy denies is answered here and never reaches the handler. One that it allows carries the policy's
// headers, is held for the wait of a queue if there is one, and is reported to the policy when it is over. The handler sees
// the path that was judged, so that no spelling of a path escapes a rule.
package nethttpmw
