// Package metrics shows what Headgate does to Prometheus.
//
// [New] makes a registry of its own, never the default one. Its views, such as [Metrics.Policy] and [Metrics.Store], are the
// observers of the other packages, by their methods alone: they import nothing of them, nor do those import this. What is read
// when somebody scrapes comes as functions in a [Config]. [Metrics.Handler] is the page.
//
// A view may be told of every request: it adds to one of several cells, without a lock and without an allocation. No label
// ever holds what a client sends, and each set of labels has a bound, beyond which all goes to "(other)".
//
// docs/metrics.md lists every metric, with queries and alerts.
package metrics
