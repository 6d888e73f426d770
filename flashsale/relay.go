package flashsale

import "context"

// Relay carries events to other services: at least once each, in any order. An event is a message with the id "rid:version", by
// which its readers tell what they have had, and the partition key rid.
type Relay interface {
	// Publish returns when the broker has all of them for good; with an error, some of them may have come through.
	Publish(ctx context.Context, events []Event) error
	Close() error
}

// MessageID returns "rid:version".
func (e *Event) MessageID() string { return e.RID + ":" + itoa(e.Version) }
