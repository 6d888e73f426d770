// Package natsrelay carries the events of a sale to NATS JetStream, behind [flashsale.Relay].
//
// An event is a message on the subject PREFIX.SALE.STATE, such as headgate.sale.spring.confirmed (a dot in the id of a sale is a ~
// there), with the body of [flashsale.MarshalEvent] and the event's id, "rid:version", as its Nats-Msg-Id. Publish returns when the
// stream has acknowledged all of them.
//
// An event that was published and could not be marked as such is published again, as a rule within seconds. Within its window for
// duplicates (Config.Duplicates) the stream keeps one of them; after it, a reader gets both, and tells by the id. Package inbox does
// that for readers with a database of their own.
package natsrelay
