package policy

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// actionFields are the fields that go with an action.
var actionFields = map[Action][]string{
	Wait: {"max_wait"}, Stale: {"max_age", "public"}, Fallback: {"status", "content_type", "body", "file"},
}

func (s scope) decodeAction(n *node) action {
	a := action{kind: Reject, maxAge: defaultMaxAge}
	if n == nil {
		return a
	}
	s.where += ": on_deny"
	fields := s.fields(n, onDenyMapping)
	word := s.required(n, fields, "action")
	words := []string{string(Reject), string(Wait), string(Mark), string(Stale), string(Fallback), string(Challenge), string(WaitingRoom), string(Queue)}
	a.kind = Action(s.oneOf(word, "action", words...))
	for _, f := range n.fields {
		if f.name != "action" && fields[f.name] != nil && !slices.Contains(actionFields[a.kind], f.name) {
			s.fail(f.pos, "%s does not go with action %s", f.name, a.kind)
		}
	}
	a.maxWait = s.durationIn(fields["max_wait"], "max_wait", defaultMaxWait, time.Millisecond, time.Minute)
	a.maxAge = s.durationIn(fields["max_age"], "max_age", defaultMaxAge, time.Second, 24*time.Hour)
	a.public = s.boolean(fields["public"], "public")
	switch a.kind {
	case Fallback:
		a.fallback = s.decodeFallback(n, fields)
	case Challenge, WaitingRoom, Queue:
		s.warn(word.pos, fmt.Sprintf("%s: action %s is not there yet and acts as reject", s.where, a.kind))
	}
	return a
}

func (s scope) decodeFallback(n *node, fields map[string]*node) *httpverdict.Fallback {
	f := &httpverdict.Fallback{Status: int(s.integer(fields["status"], "status", 200, 200, 599)), ContentType: "text/plain; charset=utf-8"}
	if at := fields["content_type"]; at != nil {
		text, ok := s.text(at, "content_type")
		if kind, _, err := mime.ParseMediaType(text); ok && (err != nil || !strings.Contains(kind, "/")) {
			s.fail(at.pos, "content_type %q is not a media type such as application/json", clip(text, 60))
		}
		f.ContentType = text
	}
	body, file := fields["body"], fields["file"]
	if bodyless(f.Status) {
		for _, name := range []string{"body", "file", "content_type"} {
			if at := fields[name]; at != nil {
				s.fail(at.pos, "%s has no meaning with status %d, which has no body; remove it", name, f.Status)
			}
		}
		f.ContentType = ""
		return f
	}
	switch {
	case body != nil && file != nil:
		s.fail(file.pos, "body and file exclude each other; keep one")
	case file != nil:
		f.Body, _ = s.readFile(file, "file")
	case body != nil:
		text, _ := s.text(body, "body")
		f.Body = []byte(text)
	default:
		s.fail(n.pos, "fallback needs what to answer; write body or file")
	}
	return f
}

// bodyless tells whether an answer of this status has no body.
func bodyless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}
