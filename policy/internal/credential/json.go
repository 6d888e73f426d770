package credential

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how many arrays and objects a document may have inside each other, the outermost among them.
const maxDepth = 32

// Field finds a field of a JSON document by the keys that lead to it from the outermost object. The value is the text of a
// string, the digits of a whole number, "true" or "false". Anything else is missing: null, an object or an array, also one
// on the way; a number with a fraction or an exponent, "-0", or one that fits neither int64 nor uint64, since what those are
// depends on who reads them; an empty string.
//
// The whole document must be good, not only what leads to the field: JSON of RFC 8259 in valid UTF-8 without a byte order
// mark, nothing but space behind it, nested at most 32 deep, no lone surrogates and no NUL in strings. No object in it may
// have a key twice, however the two are escaped; and in the objects on the way, no second key may differ from the one looked
// for in case alone, since many readers do not tell them apart. Else the field is missing.
//
// The time is linear in the length of the body but for the sorting of one object's keys. The caller bounds the length.
func Field(body []byte, path []string) (value string, ok bool) {
	if len(path) == 0 || !utf8.Valid(body) {
		return "", false
	}
	s := scanner{data: body, path: path, seed: maphash.MakeSeed()}
	if !s.document(0) || s.from == s.to {
		return "", false
	}
	if !s.escaped {
		return string(body[s.from:s.to]), true
	}
	s.unescape(body[s.from:s.to])
	return string(s.unescaped), true
}

// validJSON tells whether a document is as good as Field wants it, wherever a value may be.
func validJSON(data []byte) bool {
	s := scanner{data: data, seed: maphash.MakeSeed()}
	return utf8.Valid(data) && s.document(offPath)
}

// offPath is the level of a value that the path does not lead to.
const offPath = -1

// scanner walks over a document once. It keeps no tree: of each open object, it knows hashes of the keys so far.
type scanner struct {
	data []byte
	at   int
	path []string
	open [maxDepth]container
	// depth is how many containers are open.
	depth int
	// keys holds hashes of the keys of all open objects. They are seeded anew for each document, so nobody can aim at a
	// collision; one in 2^64 makes a document missing, and never hides a key that is there twice.
	keys hashes
	seed maphash.Seed
	// unescaped is room for one text.
	unescaped []byte
	// from and to are where the value is found, without quotes.
	from, to int
	escaped  bool
}

// container is an open object or array.
type container struct {
	end   byte // what closes it
	begun bool // it has a member
	seen  bool // it has a key like the one looked for
	// level is how many keys of the path lead here, and the index of the next; offPath for none.
	level int
	// first is where its keys begin in scanner.keys.
	first int
}

// hashes is a stack. A few stand in place, which keeps small documents off the heap.
type hashes struct {
	few   [48]uint64
	many  []uint64 // all of them, once there were more than a few
	count int
}

func (h *hashes) add(hash uint64) {
	if h.many == nil && h.count == len(h.few) {
		h.many = append(make([]uint64, 0, 8*len(h.few)), h.few[:]...)
	}
	if h.many == nil {
		h.few[h.count] = hash
	} else {
		h.many = append(h.many[:h.count], hash)
	}
	h.count++
}

// cut takes away all from the first on, and tells whether they were all different.
func (h *hashes) cut(first int) bool {
	all := h.many
	if all == nil {
		all = h.few[:]
	}
	last := all[first:h.count]
	h.count = first
	slices.Sort(last)
	for i := 1; i < len(last); i++ {
		if last[i] == last[i-1] {
			return false
		}
	}
	return true
}

// document reads the whole document, whose outermost value is at a level.
func (s *scanner) document(level int) bool {
	s.space()
	if !s.value(level) {
		return false
	}
	for s.depth > 0 {
		if !s.member() {
			return false
		}
	}
	s.space()
	return s.at == len(s.data)
}

// member reads one member of the innermost container, or its end.
func (s *scanner) member() bool {
	c := &s.open[s.depth-1]
	s.space()
	if s.take(c.end) {
		return s.close(c)
	}
	if c.begun && !s.take(',') {
		return false
	}
	c.begun = true
	s.space()
	level := offPath
	if c.end == '}' {
		var ok bool
		if level, ok = s.key(c); !ok {
			return false
		}
		s.space()
	}
	return s.value(level)
}

// close ends the innermost container, and looks for keys that are there twice.
func (s *scanner) close(c *container) bool {
	s.depth--
	return s.keys.cut(c.first)
}

// key reads a key and its colon, and returns the level of the value behind it.
func (s *scanner) key(c *container) (level int, ok bool) {
	raw, escaped, ok := s.text()
	s.space()
	if !ok || !s.take(':') {
		return offPath, false
	}
	if escaped {
		s.unescape(raw)
		raw = s.unescaped
	}
	s.keys.add(maphash.Bytes(s.seed, raw))
	if c.level == offPath || !like(raw, s.path[c.level]) {
		return offPath, true
	}
	if c.seen {
		return offPath, false
	}
	c.seen = true
	if string(raw) != s.path[c.level] {
		return offPath, true
	}
	return c.level + 1, true
}

// like tells whether a reader that ignores case takes a key for the one with that name. A letter has at most three times
// as many bytes as another one of its kind.
func like(key []byte, name string) bool {
	return len(key) <= 3*len(name) && strings.EqualFold(string(key), name)
}

// value reads a scalar, or opens a container.
func (s *scanner) value(level int) bool {
	if s.at == len(s.data) {
		return false
	}
	first := s.data[s.at]
	switch {
	case first == '{' || first == '[':
		return s.enter(first, level)
	case level != offPath && level < len(s.path):
		return false // there is nothing in a scalar
	}
	wanted := level != offPath
	start := s.at
	switch {
	case first == '"':
		_, escaped, ok := s.text()
		if wanted {
			s.from, s.to, s.escaped = start+1, s.at-1, escaped
		}
		return ok
	case first == '-' || isDigit(first):
		if !s.number() || wanted && !plain(s.data[start:s.at]) {
			return false
		}
	default:
		if word, ok := s.word(); !ok || wanted && string(word) == "null" {
			return false
		}
	}
	if wanted {
		s.from, s.to = start, s.at
	}
	return true
}

func (s *scanner) enter(first byte, level int) bool {
	if s.depth == maxDepth || level == len(s.path) {
		return false
	}
	end := byte('}')
	if first == '[' {
		end = ']' // no element of an array is on the path
	}
	s.open[s.depth] = container{end: end, level: level, first: s.keys.count}
	s.depth++
	s.at++
	return true
}

// plain tells whether a number has one spelling, and one meaning to all readers that know 64 bits.
func plain(number []byte) bool {
	if !wholeNumber(string(number)) {
		return false
	}
	if number[0] == '-' {
		_, err := strconv.ParseInt(string(number), 10, 64)
		return err == nil
	}
	_, err := strconv.ParseUint(string(number), 10, 64)
	return err == nil
}

// wholeNumber tells whether a number of valid JSON is whole and written in plain digits. "-0" is not: it is 0 once more.
func wholeNumber(number string) bool {
	return !strings.ContainsAny(number, ".eE") && number != "-0"
}
