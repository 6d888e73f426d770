package replay

import (
	"strings"

	"github.com/tidwall/gjson"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// jsonLine reads logs of one JSON object a line.
type jsonLine struct {
	table *fieldTable
	clock clockReader
	// found has, by role, the value of the field with the lowest rank.
	found [roleDimension + 1]foundField
}

type foundField struct {
	rank  int // +1; 0 for none
	value gjson.Result
}

func (p *jsonLine) parse(line string, e *entry) problem {
	if !gjson.Valid(line) {
		return notJSON
	}
	object := gjson.Parse(line)
	if !object.IsObject() {
		return notJSON
	}
	clear(p.found[:])
	p.collect(object, "", e)
	return p.fill(e)
}

// collect goes through an object, and into those of its objects that have a field with a meaning.
func (p *jsonLine) collect(object gjson.Result, prefix string, e *entry) {
	object.ForEach(func(key, value gjson.Result) bool {
		path := key.Str
		if prefix != "" {
			path = prefix + "." + path
		}
		if value.IsObject() {
			if p.table.inner[path] {
				p.collect(value, path, e)
			}
			return true
		}
		for _, m := range p.table.meanings[path] {
			p.note(m, value, e)
		}
		return true
	})
}

func (p *jsonLine) note(m meaning, value gjson.Result, e *entry) {
	if value.IsArray() { // a header with its lines
		for _, one := range value.Array() {
			p.note(m, one, e)
			if m.role != roleHeader {
				return
			}
		}
		return
	}
	text := textOf(value)
	if text == "" || text == "-" {
		return
	}
	switch f := &p.found[m.role]; {
	case m.role == roleHeader || m.role == roleDimension:
		e.addField(m.name, text, m.role == roleDimension)
	case f.rank == 0 || m.rank+1 < f.rank: // of two of one name the first counts
		f.rank, f.value = m.rank+1, value
	}
}

// textOf is a value as text, "" for null, true, false and what is nested.
func textOf(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return v.Str
	case gjson.Number:
		return v.Raw
	default:
		return ""
	}
}

func (p *jsonLine) text(r role) string { return textOf(p.found[r].value) }

func (p *jsonLine) fill(e *entry) problem {
	when := p.text(roleTime)
	if when == "" {
		return jsonTime
	}
	var what problem
	if e.at, what = p.clock.any(when); what != fine {
		if what == badTime {
			what = jsonBadTime
		}
		return what
	}
	if what := p.fillNumbers(e); what != fine {
		return what
	}
	e.user, e.query = p.text(roleUser), p.text(roleQuery)
	if e.setClient(p.text(roleIP)); e.client == "" {
		e.setClient(p.text(rolePeer))
		e.addrIsPeer = true
	}
	if e.client == "" {
		return jsonClient
	}
	return p.fillRequest(e)
}

func (p *jsonLine) fillNumbers(e *entry) problem {
	var ok bool
	if text := p.text(roleStatus); text != "" {
		status, ok := smallNumber(text)
		if !ok || status > 999 {
			return jsonStatus
		}
		e.status = int(status)
	}
	for _, n := range [...]struct {
		role role
		to   *int64
	}{{roleBytes, &e.bytes}, {roleRequestBytes, &e.requestBytes}} {
		if text := p.text(n.role); text != "" {
			if *n.to, ok = smallNumber(text); !ok {
				*n.to = 0 // a size that is none is not worth the line
			}
		}
	}
	if text := p.text(roleSeconds); text != "" {
		e.took = tookMicros(text, true)
	} else if text := p.text(roleDuration); text != "" {
		e.took = tookMicros(text, false)
	}
	if e.took > 0 {
		e.at -= e.took // a line is written when the request is over, and judged when it began
	}
	if e.at < headgate.MinTime {
		return timeRange
	}
	return fine
}

func (p *jsonLine) fillRequest(e *entry) problem {
	host, query := p.text(roleHost), e.query
	method, path := p.text(roleMethod), p.text(rolePath)
	var what problem
	switch line := p.text(roleRequest); {
	case method != "" && path != "":
		if !isMethod(method) {
			return notHTTP
		}
		e.method = method
		what = e.setTarget(path)
	case line != "":
		what = e.setRequest(line)
	case method == "":
		return jsonMethod
	default:
		return jsonPath
	}
	if query != "" {
		e.query = strings.TrimPrefix(query, "?")
	}
	if host != "" {
		e.host = httpverdict.CleanHost(host)
	}
	return what
}
