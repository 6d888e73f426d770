package flashsale

import "time"

const (
	// LullFor is how long a Lull lasts that begins now. What is given back waits for the end of it before it is sold.
	LullFor = 50 * time.Millisecond
	// MaxMarks bounds the marks that a Stock keeps of a key in one epoch: 64 MB of them, for about four million reservations. Beyond
	// that there are no lulls, and every call is asked.
	MaxMarks = 1 << 23
)

// LullAsk asks for a Lull.
type LullAsk struct {
	// After is how many of the epoch's marks the caller has, and Last the last of them. Zero: it has none.
	After int64
	Last  uint64
	// Limit bounds the marks of the answer.
	Limit int
}

// Lull is a time in which a Stock gives nobody new more than Above units, and who is not new: what it takes to answer "sold out" in the
// Stock's place and to be right.
//
// A rid has a mark from when the Stock comes to know of it, whatever becomes of it, until the epoch ends; so does the user who has asked
// with it, and a user who was loaded as a buyer. So a caller who has all marks (From + len(Marks) = Count) knows of every other rid, at
// the moment of the call and until For later: it is unknown, or SQL has just said of it that it ended without a sale; whoever asks for more than Above units with it is refused as sold out,
// if the sku is on sale; and it is not the purchase limit that refuses, unless it is that of one who wants too many at once.
type Lull struct {
	// Marks are some of the [Mark]s of what is known, in the order in which it became known, from the From-th on, and Count is how many there
	// are. From is After if Last stands there, else 0: the Stock has lost some since, and begins anew. A mark can come twice.
	Marks       []uint64
	From, Count int64
	// Code is CodeNotOpen, with its Detail as in an Answer, if the sku is not on sale. There is no lull then.
	Code   Code
	Detail string
	// Available and Seq are those of the moment of the call.
	Available, Seq int64
	// For is how long the lull lasts from the moment of the call on; 0 if there is none: not on sale, not the last mark, or too many.
	// Above is less than Available if a lull goes on that began before units came back. Such a one is not prolonged.
	For   time.Duration
	Above int64
}

// Complete reports whether nothing of the marks is missing after this page.
func (l *Lull) Complete() bool { return l.From+int64(len(l.Marks)) >= l.Count && l.Count < MaxMarks }

// Mark is a fingerprint of a rid or a user, never 0: FNV-1a of its bytes (Fowler, Noll, Vo), its bits mixed by the finalizer of
// MurmurHash3 (Appleby), so that any of them can index a table. Two names can have one mark: then one is taken for known that is not.
func Mark(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return max(h^h>>33, 1)
}
