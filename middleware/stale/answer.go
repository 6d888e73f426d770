package stale

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How an answer comes to be given, in the words of Cache-Status.
const (
	byDenial  = "headgate; hit; detail=denied"
	byFailure = "headgate; hit; detail=failed"
	byRefresh = "headgate; hit; detail=refreshing"
	byWaiting = "headgate; fwd=miss; collapsed"
)

// Answer is a kept answer that a request may have. It must be written, once: until then it takes memory.
type Answer struct {
	c       *Cache
	variant *variant
	age     time.Duration
	how     string
}

// Age returns how old the answer is.
func (a *Answer) Age() time.Duration { return a.age }

// Write answers a request. Headers that w has already stay where the answer has none of that name; Vary is added to.
func (a *Answer) Write(w http.ResponseWriter, r *http.Request) {
	defer a.c.taken(a.variant)
	v, h := a.variant, w.Header()
	for name, values := range v.header {
		switch {
		case name == "Vary":
			h[name] = append(slices.Clip(h[name]), values...)
		case values == nil: // tells net/http to make none up
			h[name] = nil
		default:
			h[name] = slices.Clone(values)
		}
	}
	h["Age"] = []string{strconv.FormatInt(int64(a.age/time.Second), 10)}
	h["Cache-Status"] = append(h["Cache-Status"], a.how)
	if v.status == http.StatusNotModified || v.unchanged(r.Header) {
		delete(h, "Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h["Content-Length"] = []string{strconv.Itoa(len(v.body))}
	w.WriteHeader(v.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(v.body) // on an error the client has gone: nobody is left to tell
	}
}

// unchanged tells whether the client has the answer already (RFC 9110, section 13.2.2).
func (v *variant) unchanged(request http.Header) bool {
	if lines := request["If-None-Match"]; len(lines) > 0 {
		tag := first(v.header["Etag"])
		return slices.ContainsFunc(lines, func(line string) bool { return names(line, tag) })
	}
	since, err := http.ParseTime(first(request["If-Modified-Since"]))
	if err != nil {
		return false
	}
	modified, err := http.ParseTime(first(v.header["Last-Modified"]))
	return err == nil && !modified.After(since)
}

// names tells whether a line of If-None-Match names an entity tag, by the weak comparison. Tags may hold commas.
func names(line, tag string) bool {
	if strings.TrimSpace(line) == "*" {
		return true
	}
	tag = strings.TrimPrefix(tag, "W/")
	for tag != "" {
		line = strings.TrimPrefix(strings.TrimLeft(line, " \t,"), "W/")
		if !strings.HasPrefix(line, `"`) {
			return false
		}
		end := strings.IndexByte(line[1:], '"') + 2
		if end < 2 {
			return false
		}
		if line[:end] == tag {
			return true
		}
		line = line[end:]
	}
	return false
}
