package redisstock

import (
	"encoding/binary"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

// What lies in Redis, as lua/head.lua says.
const (
	resHead  = 1 + 8 + 8 + 8 // state, version, at, deadline
	jobHead  = 8 + 8 + 8 + 1 // at, deadline, seq, place
	deadHead = 8 + 4 + 2     // died at, deliveries, length of the reason
	fromSQL  = 255           // the length of a body that there is none of
	maxBody  = 32
	maxRIDs  = 16
)

// text is what a reservation asks for, as res and q keep it.
type text struct {
	quantity int64
	user     string
	body     string
	known    bool // whether there is a body: what came from SQL has none
	origin   string
}

func (t *text) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(t.quantity))
	b = append(append(b, byte(len(t.user))), t.user...)
	if t.known {
		b = append(append(b, byte(len(t.body))), t.body...)
	} else {
		b = append(b, fromSQL)
	}
	return append(b, t.origin...)
}

func (t *text) string() string {
	var space [128]byte
	return string(t.append(space[:0]))
}

// parseText reads a text to the end of raw.
func parseText(raw string) (t text, ok bool) {
	if len(raw) < 5 {
		return t, false
	}
	t.quantity = int64(uint32At(raw, 0))
	if t.user, raw, ok = cutLength(raw[4:]); !ok || raw == "" {
		return t, false
	}
	if raw[0] == fromSQL {
		t.origin = raw[1:]
		return t, true
	}
	t.known = true
	t.body, t.origin, ok = cutLength(raw)
	return t, ok
}

// cutLength cuts what has its length in the first byte.
func cutLength(raw string) (head, rest string, ok bool) {
	if raw == "" || len(raw) < 1+int(raw[0]) {
		return "", "", false
	}
	n := 1 + int(raw[0])
	return raw[1:n], raw[n:], true
}

func uint32At(s string, at int) uint32 {
	return uint32(s[at]) | uint32(s[at+1])<<8 | uint32(s[at+2])<<16 | uint32(s[at+3])<<24
}

func int64At(s string, at int) int64 {
	return int64(uint64(uint32At(s, at)) | uint64(uint32At(s, at+4))<<32)
}

// packEntry is an entry as res has it.
func packEntry(e *flashsale.Entry) string {
	var space [160]byte
	b := append(space[:0], byte(e.State))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Version))
	b = binary.LittleEndian.AppendUint64(b, uint64(micros(e.At)))
	b = binary.LittleEndian.AppendUint64(b, 0)
	t := text{quantity: e.Quantity, user: e.User}
	return string(t.append(b))
}

// parseEntry reads a value of res.
func parseEntry(rid, raw string) (e flashsale.Entry, t text, ok bool) {
	if len(raw) < resHead {
		return e, t, false
	}
	if t, ok = parseText(raw[resHead:]); !ok {
		return e, t, false
	}
	e = flashsale.Entry{
		RID: rid, User: t.user, Quantity: t.quantity,
		State: flashsale.State(raw[0]), Version: int64At(raw, 1), At: fromMicros(int64At(raw, 9)),
	}
	if e.State == flashsale.Pending {
		e.Deadline = fromMicros(int64At(raw, 17))
	}
	return e, t, true
}

// packBuyer is a buyer as user has it: of the rids the latest.
func packBuyer(b *flashsale.Buyer) string {
	rids := b.RIDs[max(0, len(b.RIDs)-maxRIDs):]
	var space [512]byte
	raw := binary.LittleEndian.AppendUint32(space[:0], uint32(b.Quantity))
	raw = append(raw, byte(len(rids)))
	return string(append(raw, strings.Join(rids, ",")...))
}

// parseHolds reads the rids of a value of user.
func parseHolds(raw string) []string {
	if len(raw) < 6 {
		return nil
	}
	return strings.Split(raw[5:], ",")
}

// parseJob reads what q has of a job.
func parseJob(id, raw string) (job flashsale.Job, ok bool) {
	if len(raw) < jobHead {
		return job, false
	}
	rid, rest, found := strings.Cut(raw[jobHead:], ",")
	t, ok := parseText(rest)
	if !found || !ok {
		return job, false
	}
	return flashsale.Job{
		ID: id, RID: rid, User: t.user, Quantity: t.quantity, Origin: t.origin,
		Seq: int64At(raw, 16) + int64(raw[jobHead-1]), At: fromMicros(int64At(raw, 0)), Deadline: fromMicros(int64At(raw, 8)),
	}, true
}

// parseDead reads a value of dead.
func parseDead(id, raw string) (d flashsale.DeadJob, ok bool) {
	if len(raw) < deadHead {
		return d, false
	}
	end := deadHead + int(raw[12]) + int(raw[13])<<8
	if len(raw) < end {
		return d, false
	}
	d.Reason, d.DiedAt = raw[deadHead:end], fromMicros(int64At(raw, 0))
	d.Job, ok = parseJob(id, raw[end:])
	d.Deliveries = int64(uint32At(raw, 8))
	return d, ok
}
