package policy

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/headgate-io/headgate/policy/internal/lookup"
)

// Bounds of look-ups.
const (
	// maxLookedUp bounds the text that a look-up is made with.
	maxLookedUp = 1024
	// leastFindTime is how long all look-ups of a request together may take where each is quicker.
	leastFindTime = 200 * time.Millisecond
)

// newLookups makes the caches in front of look-ups, or takes over those of the engine before.
func newLookups(p *Policy, cfg *EngineConfig) []*lookup.Cache {
	caches := make([]*lookup.Cache, len(p.dims))
	for i := range p.dims {
		l := p.dims[i].lookUp
		if l == nil {
			continue
		}
		if caches[i] = cfg.Before.cacheOf(&p.dims[i]); caches[i] == nil {
			caches[i] = lookup.New(lookup.Config{Keep: l.keep, Timeout: l.timeout, Now: cfg.Now})
		}
	}
	return caches
}

// cacheOf returns the cache that can be that of a dimension of another policy, nil if there is none. Hash, field and address
// may have changed: they are in the keys.
func (e *Engine) cacheOf(dim *dimension) *lookup.Cache {
	if e == nil {
		return nil
	}
	for i := range e.policy.dims {
		d := &e.policy.dims[i]
		if d.name != dim.name || d.kind != dim.kind || d.lookUp == nil {
			continue
		}
		if had, has := d.lookUp, dim.lookUp; had.json == has.json && had.keep == has.keep && had.timeout == has.timeout {
			return e.lookups[i]
		}
	}
	return nil
}

// find looks a dimension up. What cannot be found out in time, and what is not there, has the default.
func (s *scratch) find(index int, dim *dimension) string {
	where, field, ok := s.address(dim)
	if !ok {
		return ""
	}
	cache, key := s.e.lookups[index], where
	if dim.kind == dimRedis {
		key += "\x00" + field
	}
	a, hit := cache.Cached(key)
	switch {
	case hit:
	case s.ctx.Err() != nil: // nobody waits any more: no service is to be asked for that
		a = cache.Kept(key)
	default:
		ctx, cancel := s.findTime()
		a.Value, a.OK, _ = cache.Get(ctx, key, s.e.outside(dim.kind, where, field))
		cancel()
	}
	if a.OK {
		return a.Value
	}
	return dim.lookUp.otherwise
}

// address returns where a dimension is looked up: a hash and its field, or a URL and the member of its answer. It reports false
// if that needs a dimension that is missing.
func (s *scratch) address(dim *dimension) (where, field string, ok bool) {
	l := dim.lookUp
	if dim.kind == dimHTTP {
		where, ok = s.fill(&l.url, escape)
		return where, l.json, ok
	}
	if where, ok = s.fill(&l.hash, nil); ok {
		field, ok = s.fill(&l.field, nil)
	}
	return where, field, ok
}

// outside returns a look-up. It may outlive the request, and uses nothing of it.
func (e *Engine) outside(kind dimensionKind, where, field string) lookup.Func {
	find := e.cfg.Lookups.HTTPGet
	if kind == dimRedis {
		find = e.cfg.Lookups.HashField
	}
	return func(ctx context.Context) (string, bool, error) { return find(ctx, where, field) }
}

// escape makes a value safe in the path and in the query of an address.
func escape(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

// findTime returns the time that is left for the look-ups of the request: all together take as long as the slowest one may.
// What is looked up later still is only asked for, so that the next request finds it.
func (s *scratch) findTime() (context.Context, context.CancelFunc) {
	if s.findUntil.IsZero() {
		s.findUntil = time.Now().Add(max(s.p.slowest, leastFindTime))
	}
	return context.WithDeadline(s.ctx, s.findUntil)
}

// fill writes a template out. It reports false if a dimension of it is missing or has a value that would lead elsewhere, or
// if the text is too long.
func (s *scratch) fill(t *template, escape func(string) string) (string, bool) {
	text := t.words[0]
	for i, dim := range t.dims {
		value, ok := s.value(dim)
		if !ok || strings.ContainsFunc(value, control) || escape != nil && climbs(value) {
			return "", false
		}
		if escape != nil {
			value = escape(value)
		}
		if s.p.dims[dim].kind != dimIP && i+1 < len(t.dims) && strings.IndexByte(value, t.words[i+1][0]) >= 0 {
			return "", false // it could be that value and the next one, or others
		}
		if text += value + t.words[i+1]; len(text) > maxLookedUp {
			return "", false
		}
	}
	return text, len(text) <= maxLookedUp
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// climbs tells whether a value has a segment of dots, which can lead to another path even where its slashes are escaped.
func climbs(value string) bool {
	for segment := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '/' || r == '\\' }) {
		if strings.Trim(segment, ".") == "" {
			return true
		}
	}
	return value == ""
}
