package flashsale

import "context"

// Relay carries events to other services: at least once each, in any order. An event is a message with the id "rid:version", by
// which its readers tell what they have had, the partition key rid, and the body of [MarshalEvent]. Implementations are safe for
// concurrent use.
type Relay interface {
	// Publish returns when the broker has all of them for good; with an error, some of them may have come through. The order of one
	// call is kept. CodeInvalidArgument tells that at least one of them is refused for good, whatever the state of the broker is:
	// the caller finds out which, and does not let the others wait for it. With any other code the broker takes nothing now, or
	// did not say: the caller comes back later with the same events.
	Publish(ctx context.Context, events []Event) error
	Close() error
}

// MessageID returns "rid:version".
func (e *Event) MessageID() string { return e.RID + ":" + itoa(e.Version) }
