// Package kafkarelay carries the events of a sale to Kafka, behind [flashsale.Relay].
//
// An event is a record whose key is the reservation's rid, so that all versions of a reservation lie in one partition, whose header
// "message-id" is the event's id, "rid:version", and whose value is the body of [flashsale.MarshalEvent]. Publish returns when all
// replicas in sync have all records. The producer is idempotent: what it repeats by itself comes once, in its order. What is
// published again, because it could not be marked as published or was given up while it was under way, comes twice; readers tell by the
// id. Package inbox does that for readers with a database of their own.
//
// A topic that loses nothing has replication.factor 3 and min.insync.replicas 2. Adding partitions to a topic moves rids to others, and
// with them the order of their versions.
package kafkarelay
