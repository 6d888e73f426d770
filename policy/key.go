package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// maxKeyPart is the longest value that stands in a key as it is; a longer one is hashed.
const maxKeyPart = 128

// keyPart has the dimensions of one part, of which the first that is present counts.
type keyPart []int

// keySpec is what a key is built of.
type keySpec struct {
	parts []keyPart
	// text is the same for equal specs.
	text string
	// perRule: the key holds the route, which depends on the rule.
	perRule bool
}

func newKeySpec(parts []keyPart, dims []dimension) keySpec {
	spec := keySpec{parts: parts}
	var b strings.Builder
	for _, part := range parts {
		for _, dim := range part {
			b.WriteString(dims[dim].name)
			b.WriteByte('|')
			spec.perRule = spec.perRule || dims[dim].kind == dimRoute
		}
		b.WriteByte(',')
	}
	spec.text = b.String()
	return spec
}

// appendKey writes the key of a request. Every part names its dimension and the length of its value, or the hash of a long
// one, so that no two keys collide, whatever a client sends:
//
//	ip=12:198.51.100.9,route=6:/login
//	user#0123456789abcdef0123456789abcdef
//	device!                                 (missing)
//
// It reports whether a part is missing.
func (s *scratch) appendKey(b []byte, spec *keySpec) (key []byte, lacking bool) {
	for i, part := range spec.parts {
		if i > 0 {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = s.appendPart(b, part); !ok {
			lacking = true
			b = append(b, s.p.dims[part[0]].name...)
			b = append(b, '!')
		}
	}
	return b, lacking
}

func (s *scratch) appendPart(b []byte, part keyPart) ([]byte, bool) {
	for _, index := range part {
		dim := &s.p.dims[index]
		if value, ok := s.ipText(dim); ok {
			return appendValue(b, dim.name, value), true
		}
		if value, ok := s.value(index); ok {
			return appendValue(b, dim.name, value), true
		}
	}
	return b, false
}

func appendValue[T string | []byte](b []byte, name string, value T) []byte {
	b = append(b, name...)
	if len(value) > maxKeyPart {
		sum := sha256.Sum256([]byte(value))
		b = append(b, '#')
		return hex.AppendEncode(b, sum[:16])
	}
	b = append(b, '=')
	b = strconv.AppendInt(b, int64(len(value)), 10)
	b = append(b, ':')
	return append(b, value...)
}
