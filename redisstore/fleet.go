package redisstore

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Bounds of what the instances of a namespace keep together.
const (
	// MaxInstances is the most instances that live at a time.
	MaxInstances = 10_000
	// MaxInstanceTTL is the longest time after which an instance that is not heard of is dead.
	MaxInstanceTTL = 10 * time.Minute
	// MaxNotes is the most notes.
	MaxNotes = 1000
	// MaxNoteName is the longest name of an instance or a note, in bytes.
	MaxNoteName = 128
	// MaxNoteValue is the longest value of a note, in bytes.
	MaxNoteValue = 4096
	// MaxNoteTTL is the longest time that a note has an end after. One that stays is kept this long after the last Beat or Note of
	// anybody.
	MaxNoteTTL = 30 * 24 * time.Hour
)

// What fleet.lua does.
const (
	fleetLives = 1
	fleetNote  = 2
)

// The answers of fleet.lua.
const (
	fleetDone   = 0
	fleetNoRoom = 1
)

// keyFleet is the letter of the keys of the fleet. They lie in the first shard.
const keyFleet = '@'

// maxAside bounds the calls that go past the queue and have not come back.
const maxAside = 8

// Beat says that an instance lives, for ttl from now, at most MaxInstanceTTL, rounded up to the ms; with a ttl of 0 or less, that it
// has gone. It returns how many live, this one counted unless it has gone, and all notes there are. The id is 1 to MaxNoteName bytes of any kind, and two instances must not share one. The time is
// that of Redis.
//
// It goes past the queue of takes, and waits for Config.Timeout at most. Its codes: those of a take; CodeOverloaded also if
// MaxInstances live already; CodeInvalidCharge for an argument that is out of bounds.
func (s *Store) Beat(ctx context.Context, id string, ttl time.Duration) (live int, notes map[string]string, err error) {
	ttl = max(ttl, 0)
	if err := checkNote("an instance", id, ttl, MaxInstanceTTL); err != nil {
		return 0, nil, s.fail(err)
	}
	reply, failed := s.meet(ctx, meeting{what: fleetLives, most: MaxInstances, name: id, ttl: ttl})
	if failed != nil {
		return 0, nil, s.fail(failed)
	}
	live, notes, ok := readFleet(reply)
	if !ok {
		return 0, nil, s.fail(badReply())
	}
	return live, notes, nil
}

// Note puts a note down for all instances of the namespace, over the one of the same name, for ttl from now, at most MaxNoteTTL; 0: it
// stays. An empty value removes it. There are MaxNotes at most, of MaxNoteName and MaxNoteValue bytes of any kind. It waits and fails
// as Beat does.
func (s *Store) Note(ctx context.Context, name, value string, ttl time.Duration) error {
	err := checkNote("a note", name, ttl, MaxNoteTTL)
	if err == nil && len(value) > MaxNoteValue {
		err = newError(headgate.CodeInvalidCharge, nil, "the value of a note has %d bytes; %d are allowed", len(value), MaxNoteValue)
	}
	if err != nil {
		return s.fail(err)
	}
	_, err = s.meet(ctx, meeting{what: fleetNote, most: MaxNotes, name: name, value: value, ttl: ttl})
	return s.fail(err)
}

func checkNote(what, name string, ttl, most time.Duration) *headgate.Error {
	switch {
	case name == "" || len(name) > MaxNoteName:
		return newError(headgate.CodeInvalidCharge, nil, "the name of %s has %d bytes; 1 to %d are allowed", what, len(name), MaxNoteName)
	case ttl < 0 || ttl > most:
		return newError(headgate.CodeInvalidCharge, nil, "the ttl %s of %s is outside 0 to %s", ttl, what, most)
	}
	return nil
}

// meeting is what fleet.lua is asked.
type meeting struct {
	what        byte
	most        int // of what there may be
	name, value string
	ttl         time.Duration
}

// arg is the argument of fleet.lua.
func (m *meeting) arg() []byte {
	arg := make([]byte, 0, 32+len(m.name)+len(m.value))
	arg = append(arg, m.what)
	for _, d := range [...]time.Duration{m.ttl, MaxInstanceTTL, MaxNoteTTL} {
		arg = putUint(arg, uint64((d+time.Millisecond-1)/time.Millisecond), 6)
	}
	arg = append(putUint(arg, uint64(m.most), 4), byte(len(m.name)))
	return append(append(arg, m.name...), m.value...)
}

// meet runs fleet.lua and returns its reply, if it says that it is done.
func (s *Store) meet(ctx context.Context, m meeting) (string, *headgate.Error) {
	prefix := s.names.prefixes[0] + string(keyFleet)
	reply, err := s.aside(ctx, &s.lanes[0], s.scripts.fleet, &raw{keys: []string{prefix + "live", prefix + "notes"}, arg: m.arg()})
	switch {
	case err != nil:
		return "", err
	case reply == "":
		return "", badReply()
	case reply[0] == fleetNoRoom:
		return "", newError(headgate.CodeOverloaded, nil, "there is no room for another; %d are allowed", m.most)
	case reply[0] == replyForeign:
		return "", newError(headgate.CodeUnavailable, nil, "a key of this namespace holds another program's data; nothing was done")
	case reply[0] != fleetDone:
		return "", badReply()
	}
	return reply, nil
}

// aside runs a script past the queue of a lane, and waits for it as a take does.
func (s *Store) aside(ctx context.Context, l *lane, script *script, r *raw) (string, *headgate.Error) {
	if err := l.barred(); err != nil {
		return "", err
	}
	o, wall, err := s.begin(ctx, script)
	if err != nil {
		return "", err
	}
	o.raw = r
	if err := s.admit(&s.asides, maxAside, "calls"); err != nil {
		s.free(o)
		return "", err
	}
	o.state.Store(opQueued)
	go func() {
		defer s.senders.Done()
		defer s.asides.Add(-1)
		b := newBatch()
		b.ops = append(b.ops, o)
		w := l.watch(true)
		s.call(b, time.Now().Add(s.cfg.Timeout+s.cfg.ConnectTimeout), w)
		w.returned()
	}()
	err, left := o.await(ctx, wall)
	if left {
		return "", err
	}
	reply := o.reply
	s.free(o)
	return reply, err
}

// readFleet reads the reply to a beat. A note that no Note can have written is another program's, and left out.
func readFleet(reply string) (live int, notes map[string]string, ok bool) {
	if len(reply) < 5 {
		return 0, nil, false
	}
	live, notes = int(getUint(reply[1:], 4)), map[string]string{}
	for rest := reply[5:]; rest != ""; {
		var note string
		if note, rest, ok = cutCounted(rest); !ok {
			return 0, nil, false
		}
		if name, value, ours := readNote(note); ours {
			notes[name] = value
		}
	}
	return live, notes, true
}

// readNote reads a note as it is stored.
func readNote(note string) (name, value string, ok bool) {
	if note == "" {
		return "", "", false
	}
	n := 1 + int(note[0])
	if n == 1 || n > 1+MaxNoteName || len(note) <= n || len(note)-n > MaxNoteValue {
		return "", "", false
	}
	return note[1:n], note[n:], true
}
