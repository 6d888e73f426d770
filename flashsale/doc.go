// Package flashsale is the domain of a flash sale: its words, its state machine as a table, and the ports behind which stock,
// orders, payments and events lie. It has no store of its own and starts no goroutine.
//
// What a sale promises: no unit is sold twice, no paid order is lost, no unit stays unsold because of a fault, nobody is
// charged twice, and every shopper gets one final answer. Three rules make that so, whatever fails between two steps:
//
//  1. Units are taken in the [Stock] first and in SQL ([Orders]) second; they are given back in SQL first and in the Stock
//     second. A crash between the two leaves the Stock too low, never too high.
//  2. Nobody is told "yours" before SQL has committed: pending, reserved and confirmed are three words.
//  3. Every transition is a compare-and-set on a reservation and its version, and what is known is answered again as it was
//     before anything else is looked at.
//
// The adapters are siblings: memstock and redisstock hold stock, sqlorders holds the truth, natsrelay and kafkarelay carry
// events, simpay is a payment provider for tests and demonstrations. Package engine runs a sale on them.
package flashsale
