// Package memstock is the stock of a flash sale in the memory of one process: the embedded default, and what fast tests run on. It gives
// the same answers as a stock in Redis, to the microsecond; flashsale/stocktest holds both to that.
//
// # What is lost when the process ends
//
// All of it: counters, reservations, the queue, dead letters, and which adjustments were made. Nothing that matters is lost with it, since
// every unit that somebody holds or has bought is in SQL before anybody is told so. Run names the stock's life, so the engine sees that
// it is another one, raises the epoch, and loads a snapshot of SQL; a reservation that was pending when the process ended was never
// promised, and whoever asks for it again is told to try anew. It serves one process: two with a memstock each would sell the same units.
//
// # Bounds
//
// Config bounds the skus, the reservations and the dead letters. A sku's queue is bounded by its rate ([flashsale.BacklogFor]). At a bound a
// reserve call is refused as busy, and nothing is dropped but the oldest dead letter, whose reservation the sweeper ends. A
// reservation takes about 500 bytes, from its acceptance until it is forgotten ([flashsale.Retention] after its end). What is left of a sku
// that is closed, such as its buyers, goes when that was quiet for as long.
package memstock
