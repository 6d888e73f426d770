// Package invariants has tests only: what a sale promises whatever happens, I1 to I16, each as a test by its name, and input that is
// refused and changes nothing. Every test runs on three pairs of stores: memory and SQLite, Redis and PostgreSQL, Redis and MariaDB, with
// engines, a provider and faults in one process and the clock in the test's hand. Figures of SQL are read around the package that keeps it.
//
// A test that cannot fail proves nothing. Each of these was seen to fail, on the pairs that have what was broken, when this was done to
// the code and undone afterwards:
//
//	I1   T1 does not look at the total; nor does the schema
//	I2   T0 does not look at what is available
//	I3   units that are sold are offered again; a withdrawal is made in SQL before the Stock
//	I4   the buyer keeps what is released; the ledger forgets it
//	I5   T0 does not know a rid again; an event of the provider counts every time
//	I6   T0 has no purchase limit; T1 has none
//	I7   a capture after a void is ignored; the poller leaves live payments; a refund is noted before it is made
//	I8   the Stock follows what has ended; what has expired can be cancelled
//	I9   the sweeper leaves what is pending, or ends one page; it is due a microsecond late
//	I10  no grace; no time to pay; time to pay granted anew
//	I11  the Stock does not look at versions; it adds units whenever it is asked to
//	I12  a snapshot leaves out buyers; a load forgets what is sold
//	I13  a job is acknowledged before it is decided; a refund is noted before it is made; an intent that the provider does not know is not made
//	     to be voided
//	I14  nothing in SQL looks at the purchase limit; a load forgets what is sold
//	I15  what expires is not offered again; the sweeper leaves what is not paid
//	I16  what the Stock has forgotten SQL is not asked for; another body is the same; T0 does not know a rid again
//	bad input: webhooks are believed; quantities are not looked at; a refusal leaves a trace
//
// With HEADGATE_EVERY_CRASH set, engines die (I13) and writes are lost (I14) at every call of a port, instead of at some.
package invariants
