package flashsale

import (
	"context"
	"time"
)

const (
	// RefusalsFor is how long refusals are kept that all instances can read.
	RefusalsFor = 24 * time.Hour
	// MaxRefusalEntry bounds an entry of a [RefusalLog], in bytes: with what Redis puts around it, it fits 64 KiB.
	MaxRefusalEntry = 60 << 10
	// MaxRefusalNeedles bounds what one query looks for, RefusalNeedle is how long each is, in bytes.
	MaxRefusalNeedles = 4
	RefusalNeedle     = 8
)

// RefusalLog is where the instances of a fleet leave what they have refused, for each other and for those that come after them. It is
// optional, and nothing that a shopper is told depends on it: a store of stock may be one beside its other ports. What lies in it are
// entries, whose bytes are for the engine to know. It is bounded, in time by [RefusalsFor] and in bytes by the implementation: the oldest
// entries go first. Implementations are safe for concurrent use.
type RefusalLog interface {
	// AppendRefusals puts an entry at the end: at most MaxRefusalEntry bytes of any kind. An empty one adds nothing, but begins the log
	// where there is none, and removes what is too old. An error without an answer (CodeUnavailable) may have run; where it is
	// repeated the entry may stand there twice.
	AppendRefusals(ctx context.Context, entry []byte) error
	// FindRefusals walks from the newest entry to the oldest, a bounded part of the log in each call.
	FindRefusals(ctx context.Context, q RefusalQuery) (RefusalPage, error)
}

// RefusalQuery asks for a page.
type RefusalQuery struct {
	// Cursor is "" for the newest entries, then that of the page before.
	Cursor string
	// Needles are what is looked for, 1 to MaxRefusalNeedles of RefusalNeedle bytes each: an entry is wanted if one of them stands in it,
	// wherever. So most of the log need not leave the store.
	Needles []string
}

// RefusalPage is what a part of the log has.
type RefusalPage struct {
	// Entries are those that are wanted, the newest first. More may be among them.
	Entries []string
	// Cursor is for the next page, "" if there is none.
	Cursor string
	// Since is how far back the log reaches, by its own clock: every entry that was appended after it is still there. It is when the log
	// began, or when the last one that was removed had been appended.
	Since time.Time
	// Reached is when the oldest entry was appended that this call has looked at; zero if it has looked at none.
	Reached time.Time
}

// CheckRefusalEntry says what is wrong with an entry for a [RefusalLog].
func CheckRefusalEntry(entry []byte) error {
	if len(entry) > MaxRefusalEntry {
		return invalidf("an entry of refusals of %d bytes; at most %d go", len(entry), MaxRefusalEntry)
	}
	return nil
}

// Check says what is wrong with a query, but for its cursor.
func (q *RefusalQuery) Check() error {
	if len(q.Needles) < 1 || len(q.Needles) > MaxRefusalNeedles {
		return invalidf("%d needles to look for in the log of refusals; give 1 to %d", len(q.Needles), MaxRefusalNeedles)
	}
	for _, n := range q.Needles {
		if len(n) != RefusalNeedle {
			return invalidf("a needle of %d bytes to look for in the log of refusals; give %d", len(n), RefusalNeedle)
		}
	}
	return nil
}
