package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// kind says what a record tells.
type kind uint8

const (
	admitted kind = iota + 1
	denied
	refused  // there was no verdict: 503, and the like
	skipped  // too many calls were under way to make one more
	state    // of the instance, now and then: A is how many instances live, By whether a breaker is open
	breaker  // a breaker changed: By whether it is open
	bye      // A is the heap in use after a collection, B the units of leases lost
	held     // it was kept from running from Began to Ended, by others who wanted the processor
	flooded  // A is how many keys of a flood were decided, B how many had no verdict
	recordLn = 40
)

// By whom a request was decided.
const (
	byStore uint8 = iota
	byFallback
)

// record is what an instance writes down of one decision, or of itself. Times are in microseconds since the Unix epoch.
type record struct {
	Kind kind
	Rule uint8
	By   uint8
	// Began and Ended are the times around the call.
	Began, Ended int64
	// A is when the store says that it decided, 0 if it does not; B the start of the window that was charged, 0 if none was.
	A, B int64
}

func (r *record) took() time.Duration { return time.Duration(r.Ended-r.Began) * time.Microsecond }

func (r *record) append(b []byte) []byte {
	b = append(b, byte(r.Kind), r.Rule, r.By, 0, 0, 0, 0, 0)
	for _, v := range [...]int64{r.Began, r.Ended, r.A, r.B} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func readRecord(b []byte) record {
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8+8*i:])) }
	return record{Kind: kind(b[0]), Rule: b[1], By: b[2], Began: at(0), Ended: at(1), A: at(2), B: at(3)}
}

// ledger reads the file of an instance while it grows.
type ledger struct {
	file *os.File
	all  []record
	rest []byte
}

func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &ledger{file: f}, nil
}

// more reads what was written since and returns everything. A record that was cut off in the middle, as by SIGKILL, waits for
// its end.
func (l *ledger) more() ([]record, error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.file.Read(buffer)
		l.rest = append(l.rest, buffer[:n]...)
		for len(l.rest) >= recordLn {
			l.all = append(l.all, readRecord(l.rest))
			l.rest = l.rest[recordLn:]
		}
		if errors.Is(err, io.EOF) {
			return l.all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the records of an instance: %w", err)
		}
	}
}
