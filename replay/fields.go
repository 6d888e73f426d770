package replay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// role is what a field of a log in JSON means.
type role uint8

const (
	roleNone role = iota
	roleTime
	roleIP
	rolePeer
	roleMethod
	rolePath
	roleQuery
	roleRequest // a whole request line
	roleHost
	roleStatus
	roleBytes
	roleRequestBytes
	roleUser
	roleDuration // nanoseconds, or seconds with a fraction
	roleSeconds
	roleHeader
	roleDimension
)

// known is a role by the name that --fields has for it, with the names that fields of that role have in common logs, the
// likeliest first: nginx with a JSON format, Caddy, Traefik, Headgate itself.
type known struct {
	role    role
	name    string
	usual   []string
	meaning string
}

func roles() []known {
	return []known{
		{roleTime, "time", []string{"time", "ts", "timestamp", "@timestamp", "time_iso8601", "time_local", "msec", "datetime", "date"}, "when"},
		{roleIP, "ip", []string{"client", "client_ip", "clientip", "ip", "remote_addr", "remote_ip", "request.client_ip", "request.remote_ip", "ClientHost"}, "the client's address"},
		{rolePeer, "peer", []string{"peer"}, "the connection's address; without ip the policy finds the client from it and the headers"},
		{roleMethod, "method", []string{"method", "request_method", "request.method", "RequestMethod", "http_method", "verb"}, ""},
		{rolePath, "path", []string{"request_uri", "uri", "request.uri", "path", "url", "RequestPath"}, "with or without a query, or a whole URL"},
		{roleQuery, "query", []string{"query", "query_string", "args"}, ""},
		{roleRequest, "request", []string{"request"}, `the whole line, "GET /path HTTP/1.1"`},
		{roleHost, "host", []string{"host", "http_host", "request.host", "RequestHost", "vhost", "server_name"}, ""},
		{roleStatus, "status", []string{"status", "status_code", "response.status", "DownstreamStatus", "code"}, "of the answer"},
		{roleBytes, "bytes", []string{"bytes", "body_bytes_sent", "bytes_sent", "size", "response_size", "DownstreamContentSize"}, "of the answer"},
		{roleRequestBytes, "request_bytes", []string{"request_bytes", "request_length", "RequestContentSize"}, ""},
		{roleUser, "user", []string{"user", "remote_user", "user_id", "ClientUsername"}, "the dimension of that name"},
		{roleSeconds, "seconds", []string{"request_time"}, "how long it took, in seconds"},
		{roleDuration, "duration", []string{"duration", "Duration"}, "the same in nanoseconds, as 12ms, or in seconds with a fraction"},
	}
}

// usualHeaders are headers that logs have under names of their own.
func usualHeaders() map[string]string {
	return map[string]string{
		"http_user_agent": "User-Agent", "user_agent": "User-Agent", "http_referer": "Referer", "referer": "Referer",
		"request.headers.User-Agent": "User-Agent", "request.headers.Referer": "Referer",
	}
}

// meaning is what one field is taken for. Of several fields of one role in a line, that of the lowest rank counts.
type meaning struct {
	role role
	rank int
	name string // of a header or a dimension
}

// Fields says which field of a log in JSON means what. The zero value knows the names that are usual. It is immutable.
type Fields struct {
	own        []ownField
	dimensions []string
}

type ownField struct {
	path string
	meaning
}

// FieldNames returns the words that ParseFields knows on the left side.
func FieldNames() []string {
	var names []string
	for _, r := range roles() {
		names = append(names, r.name)
	}
	return append(names, "header.NAME", "dim.NAME")
}

// ParseFields reads a mapping such as "time=ts,ip=remote_addr,header.X-App=app,dim.tier=tier". On the right stands the name
// of a field, or the path to it in nested objects, "request.remote_ip". A word that is named takes no usual name any more.
func ParseFields(text string) (Fields, error) {
	var f Fields
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		word, path, ok := strings.Cut(item, "=")
		word, path = strings.TrimSpace(word), strings.TrimSpace(path)
		if !ok || word == "" || path == "" {
			return Fields{}, fmt.Errorf("fields: %q is not WORD=FIELD, such as time=ts", clip(item, 60))
		}
		m, err := meaningOf(word)
		if err != nil {
			return Fields{}, err
		}
		if slices.ContainsFunc(f.own, func(o ownField) bool { return o.path == path && o.meaning == m }) {
			return Fields{}, fmt.Errorf("fields: %q stands twice", clip(item, 60))
		}
		if m.role == roleDimension {
			f.dimensions = append(f.dimensions, m.name)
		}
		m.rank = len(f.own) // the first that is named wins
		f.own = append(f.own, ownField{path, m})
	}
	return f, nil
}

// Dimensions returns the names of the dimensions that the mapping sets.
func (f Fields) Dimensions() []string { return slices.Clone(f.dimensions) }

func meaningOf(word string) (meaning, error) {
	if name, ok := strings.CutPrefix(word, "header."); ok && name != "" {
		return meaning{role: roleHeader, name: http.CanonicalHeaderKey(name)}, nil
	}
	if name, ok := strings.CutPrefix(word, "dim."); ok && name != "" {
		return meaning{role: roleDimension, name: name}, nil
	}
	for _, r := range roles() {
		if r.name == word {
			return meaning{role: r.role}, nil
		}
	}
	return meaning{}, fmt.Errorf("fields: %q is unknown; the words are %s", clip(word, 60), strings.Join(FieldNames(), ", "))
}

// fieldTable finds the meanings of a field by its path.
type fieldTable struct {
	meanings map[string][]meaning
	// inner has the paths of the objects that have a meaning somewhere inside.
	inner map[string]bool
}

func (f Fields) table() *fieldTable {
	t := &fieldTable{meanings: map[string][]meaning{}, inner: map[string]bool{}}
	taken := map[role]bool{}
	for _, o := range f.own {
		t.add(o.path, o.meaning)
		taken[o.role] = true
	}
	for _, r := range roles() {
		// A request line gives method and path, and whoever names a peer and no ip wants the policy to find the client.
		if taken[r.role] || (r.role == roleIP && taken[rolePeer]) || (r.role == rolePeer && taken[roleIP]) {
			continue
		}
		for rank, name := range r.usual {
			t.add(name, meaning{role: r.role, rank: rank})
		}
	}
	for path, header := range usualHeaders() {
		if !slices.ContainsFunc(f.own, func(o ownField) bool { return o.role == roleHeader && o.name == header }) {
			t.add(path, meaning{role: roleHeader, name: header})
		}
	}
	return t
}

func (t *fieldTable) add(path string, m meaning) {
	t.meanings[path] = append(t.meanings[path], m)
	for i, c := range path {
		if c == '.' {
			t.inner[path[:i]] = true
		}
	}
}
