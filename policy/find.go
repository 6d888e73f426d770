package policy

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/headgate-io/headgate/policy/internal/lookup"
)

// maxLookedUp bounds the text that a look-up is made with.
const maxLookedUp = 1024

// newLookups makes the caches in front of look-ups.
func newLookups(p *Policy, now func() time.Time) []*lookup.Cache {
	caches := make([]*lookup.Cache, len(p.dims))
	for i := range p.dims {
		if l := p.dims[i].lookUp; l != nil {
			caches[i] = lookup.New(lookup.Config{Keep: l.keep, Timeout: l.timeout, Now: now})
		}
	}
	return caches
}

// find looks a dimension up. What cannot be found out in time, and what is not there, has the default.
func (s *scratch) find(index int, dim *dimension) string {
	l, cache, outside := dim.lookUp, s.e.lookups[index], s.e.cfg.Lookups // the look-up may outlive the request
	var key string
	var ask lookup.Func
	if dim.kind == dimRedis {
		hash, ok := s.fill(&l.hash, nil)
		field, both := s.fill(&l.field, nil)
		if !ok || !both {
			return ""
		}
		key = hash + "\x00" + field
		ask = func(ctx context.Context) (string, bool, error) { return outside.HashField(ctx, hash, field) }
	} else {
		address, ok := s.fill(&l.url, escape)
		if !ok {
			return ""
		}
		key = address
		json := l.json
		ask = func(ctx context.Context) (string, bool, error) { return outside.HTTPGet(ctx, address, json) }
	}
	if value, ok, _ := cache.Get(s.ctx, key, ask); ok {
		return value
	}
	return l.otherwise
}

// escape makes a value safe in the path and in the query of an address.
func escape(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

// fill writes a template out. It reports false if a dimension of it is missing, or the text too long.
func (s *scratch) fill(t *template, escape func(string) string) (string, bool) {
	text := t.words[0]
	for i, dim := range t.dims {
		value, ok := s.value(dim)
		if !ok {
			return "", false
		}
		if escape != nil {
			if strings.Trim(value, ".") == "" {
				return "", false // it would lead to another path
			}
			value = escape(value)
		}
		text += value + t.words[i+1]
	}
	return text, len(text) <= maxLookedUp
}
