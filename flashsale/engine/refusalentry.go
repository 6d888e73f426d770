package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"

	"github.com/headgate-io/headgate/flashsale"
)

// An entry of the log of refusals, version 1. Numbers without a size are varints as encoding/binary has them, signed where it says so.
//
//	1        the version
//	8 bytes  who wrote it, little-endian: a random number of one run of an instance
//	n        its number among those, from 1 on, so that one that stands there twice counts once
//	t        a time in µs, signed
//	k        how many kinds of refusals follow, each: sale, sku, code, detail, rule, with their lengths in a byte before them
//	r        how many records follow, each: user (8 bytes), which kind, quantity, how often, first (µs after t, signed), how long from
//	         the first to the last (µs), retry after (ms)
//
// A record of nobody, with the code "dropped", says that so many were dropped unwritten. Of users there are 64 bits of a hash: it is
// enough to find who is known, and nobody's name can be read out of it but by trying.
const (
	entryVersion = 1
	// entryHead is what stands before the kinds, and the number of the records, at most.
	entryHead = 1 + 8 + 4*binary.MaxVarintLen64
	// maxWord bounds each word of a kind, in bytes.
	maxWord = 255
	// recordMin is the least that a record takes.
	recordMin = 8 + 6
	// maxTime bounds times and the differences between them, in µs, so that their sums are none that overflow.
	maxTime = 1 << 60

	codeDropped flashsale.Code = "dropped"
)

// nobodysRefusals is what stands for all in place of a user: that of an empty name, which nobody has.
const nobodysRefusals uint64 = 0x3873d615bafd167b

// refusalName is a user as the log has them.
func refusalName(user string) uint64 {
	const prefix = "headgate refusals of "
	var room [len(prefix) + flashsale.MaxUser]byte
	sum := sha256.Sum256(append(append(room[:0], prefix...), user...))
	return binary.LittleEndian.Uint64(sum[:])
}

// needle is what the records of a user have in them.
func needle(name uint64) string {
	var b [flashsale.RefusalNeedle]byte
	binary.LittleEndian.PutUint64(b[:], name)
	return string(b[:])
}

// refusalRecord is a line as the log has it.
type refusalRecord struct {
	user            uint64
	kind            refusalKind
	quantity, count int64
	first, last     int64 // microseconds
	retry           int64 // milliseconds
}

// entryWriter makes entries. Its zero value is an empty one.
type entryWriter struct {
	kinds, records []byte
	index          map[refusalKind]int
	last           refusalKind // the one of the record before, whose number is lastAt
	lastAt         int
	base           int64
	n              int
	// refusals and dropped are what the records count, of users and of nobody.
	refusals, dropped int64
}

// add adds a record if there is room for it.
func (w *entryWriter) add(r *refusalRecord) bool {
	if w.n == 0 {
		w.base = r.first
	}
	kinds, records := len(w.kinds), len(w.records)
	at := w.kindOf(&r.kind)
	w.records = binary.LittleEndian.AppendUint64(w.records, r.user)
	for _, n := range [...]int64{int64(at), r.quantity, r.count} {
		w.records = binary.AppendUvarint(w.records, uint64(max(n, 0)))
	}
	w.records = binary.AppendVarint(w.records, r.first-w.base)
	w.records = binary.AppendUvarint(w.records, uint64(max(r.last-r.first, 0)))
	w.records = binary.AppendUvarint(w.records, uint64(max(r.retry, 0)))
	if entryHead+len(w.kinds)+len(w.records) > flashsale.MaxRefusalEntry {
		if len(w.kinds) > kinds {
			delete(w.index, r.kind)
			w.last = refusalKind{}
		}
		w.kinds, w.records = w.kinds[:kinds], w.records[:records]
		return false
	}
	w.n++
	if r.user != nobodysRefusals {
		w.refusals += r.count
	}
	return true
}

// kindOf returns the number of a kind, which is written if it is a new one.
func (w *entryWriter) kindOf(k *refusalKind) int {
	if len(w.index) > 0 && *k == w.last {
		return w.lastAt
	}
	if w.index == nil {
		w.index = map[refusalKind]int{}
	}
	at, ok := w.index[*k]
	if !ok {
		at = len(w.index)
		w.index[*k] = at
		for _, word := range [...]string{k.key.Sale, k.key.SKU, string(k.code), k.detail, k.rule} {
			word = word[:min(len(word), maxWord)]
			w.kinds = append(append(w.kinds, byte(len(word))), word...)
		}
	}
	w.last, w.lastAt = *k, at
	return at
}

// entry is all that was added, as the n-th entry of a writer, and leaves the writer empty.
func (w *entryWriter) entry(by, n uint64) []byte {
	raw := make([]byte, 0, entryHead+len(w.kinds)+len(w.records))
	raw = binary.LittleEndian.AppendUint64(append(raw, entryVersion), by)
	raw = binary.AppendUvarint(raw, n)
	raw = binary.AppendVarint(raw, w.base)
	raw = append(binary.AppendUvarint(raw, uint64(len(w.index))), w.kinds...)
	raw = append(binary.AppendUvarint(raw, uint64(w.n)), w.records...)
	clear(w.index)
	*w = entryWriter{kinds: w.kinds[:0], records: w.records[:0], index: w.index}
	return raw
}

// entryID names an entry.
type entryID struct{ by, n uint64 }

var (
	errEntryVersion = errors.New("an entry of another version")
	errEntryForm    = errors.New("an entry that is malformed")
)

// readEntry reads an entry. Visit is given each record; what it is given must not be kept.
func readEntry(raw string, visit func(id entryID, r *refusalRecord)) error {
	if raw == "" || raw[0] != entryVersion {
		return errEntryVersion
	}
	r := entryReader{rest: raw[1:]}
	id := entryID{by: r.fixed(), n: r.number()}
	base := r.signed()
	kinds := r.readKinds()
	n := r.number()
	if r.bad || n > uint64(len(r.rest)/recordMin) {
		return errEntryForm
	}
	records := r // twice, so that of a malformed one nothing is taken
	for range n {
		r.record(base, kinds)
	}
	if r.bad || r.rest != "" {
		return errEntryForm
	}
	for range n {
		one := records.record(base, kinds)
		visit(id, &one)
	}
	return nil
}

func isTime(us int64) bool { return us >= -maxTime && us <= maxTime }

// entryReader reads what is left of an entry. After what is malformed it is bad, and reads zeroes.
type entryReader struct {
	rest string
	bad  bool
}

func (r *entryReader) cut(n int) string {
	if r.bad || n > len(r.rest) {
		r.bad, r.rest = true, ""
		return ""
	}
	head := r.rest[:n]
	r.rest = r.rest[n:]
	return head
}

func (r *entryReader) fixed() (n uint64) {
	for i, b := range []byte(r.cut(8)) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

func (r *entryReader) number() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := r.cut(1)
		if b == "" || shift == 63 && b[0] > 1 {
			r.bad = true
			return 0
		}
		n |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return n
		}
	}
}

func (r *entryReader) signed() int64 {
	n := r.number()
	return int64(n>>1) ^ -int64(n&1)
}

// positive reads a number that fits 63 bits.
func (r *entryReader) positive() int64 {
	n := r.number()
	if n > math.MaxInt64 {
		r.bad = true
		return 0
	}
	return int64(n)
}

func (r *entryReader) word() string {
	n := r.cut(1)
	if n == "" {
		return ""
	}
	return r.cut(int(n[0]))
}

func (r *entryReader) readKinds() []refusalKind {
	n := r.number()
	if r.bad || n > uint64(len(r.rest)/5) {
		r.bad = true
		return nil
	}
	kinds := make([]refusalKind, n)
	for i := range kinds {
		k := &kinds[i]
		k.key = flashsale.Key{Sale: r.word(), SKU: r.word()}
		k.code, k.detail, k.rule = flashsale.Code(r.word()), r.word(), r.word()
	}
	return kinds
}

func (r *entryReader) record(base int64, kinds []refusalKind) (one refusalRecord) {
	one.user = r.fixed()
	kind := r.number()
	one.quantity, one.count = r.positive(), r.positive()
	after := r.signed()
	long := r.positive()
	one.retry = r.positive()
	if r.bad || kind >= uint64(len(kinds)) || one.count == 0 || !isTime(base) || !isTime(after) || !isTime(long) {
		r.bad, r.rest = true, ""
		return refusalRecord{}
	}
	one.first = base + after
	one.last = one.first + long
	one.kind = kinds[kind]
	return one
}
