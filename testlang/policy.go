package testlang

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// maxOpen is how many requests of a case may be open at a time.
const maxOpen = 100_000

// policy is a case of a policy while it runs.
type policy struct {
	decider httpverdict.Timed
	// open are the requests that are not over yet, by when they will be.
	open []openRequest
}

type openRequest struct {
	until   time.Time
	verdict *httpverdict.Verdict
	result  httpverdict.Result
}

// answer ends the requests that are over at a time.
func (p *policy) answer(ctx context.Context, now time.Time) {
	over := 0
	for ; over < len(p.open) && !p.open[over].until.After(now); over++ {
		p.open[over].verdict.Finish(ctx, p.open[over].result)
	}
	p.open = slices.Delete(p.open, 0, over)
}

func (p *policy) keepOpen(o openRequest) {
	at, _ := slices.BinarySearchFunc(p.open, o.until, func(o openRequest, until time.Time) int {
		if o.until.After(until) {
			return 1
		}
		return -1 // behind those that are over at the same time
	})
	p.open = slices.Insert(p.open, at, o)
}

func (p *policy) do(ctx context.Context, now time.Time, a Action) answer {
	r, ok := a.(Request)
	if !ok {
		return simple{fault: fmt.Errorf("a %T cannot be done to a policy", a)}
	}
	if p.answer(ctx, now); len(p.open) >= maxOpen {
		return simple{fault: fmt.Errorf("more than %d requests are open", maxOpen)}
	}
	path, query, _ := strings.Cut(r.Target, "?")
	path, err := httpverdict.CleanPath(path)
	if err != nil {
		return judged(httpverdict.Malformed(err), &r)
	}
	request := &httpverdict.Request{
		Method: r.Method, Host: httpverdict.CleanHost(r.Host), Path: path, RawQuery: query, Peer: r.Peer,
		Header: r.Header.Clone(), Dimensions: r.Dimensions, ContentLength: int64(len(r.Body)),
	}
	if r.Body != "" {
		request.Body = body(r.Body)
	}
	v := p.decider.At(now).Decide(ctx, request)
	answer := judged(v, &r)
	result := httpverdict.Result{Status: answer.status, RequestBytes: int64(len(r.Body))}
	if v.Allowed() {
		result.Bytes, result.Header = r.ResponseBytes, r.ResponseHeader
	}
	if v.Allowed() && r.ResponseAfter > 0 {
		p.keepOpen(openRequest{now.Add(v.Wait + r.ResponseAfter), v, result})
	} else {
		v.Finish(ctx, result)
	}
	return answer
}

// body is the body of a request, whole from the start.
type body string

// Peek implements [httpverdict.Peeker].
func (b body) Peek(_ context.Context, most int) ([]byte, error) {
	if len(b) > most {
		return nil, httpverdict.ErrBodyTooLarge
	}
	return []byte(b), nil
}

// unknownDimension returns a dimension that a request sets and the policy does not have, "" if there is none or nobody knows.
func (p *policy) unknownDimension(a Action) string {
	known, ok := p.decider.(interface{ HasDimension(name string) bool })
	r, isRequest := a.(Request)
	if !ok || !isRequest {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(r.Dimensions)) {
		if !known.HasDimension(name) {
			return name
		}
	}
	return ""
}

// verdict is the answer of a policy, and the status that the client sees.
type verdict struct {
	*httpverdict.Verdict
	status int
}

func judged(v *httpverdict.Verdict, r *Request) *verdict {
	if v.Allowed() {
		return &verdict{v, r.Response}
	}
	if v.Fallback != nil {
		return &verdict{v, v.Fallback.Status}
	}
	return &verdict{v, httpverdict.StatusOf(v.Kind)}
}

func (v *verdict) err() error { return nil }

// code is what error= compares with: the word for the reason of a denial.
func (v *verdict) code() headgate.Code {
	if v.Allowed() {
		return ""
	}
	return headgate.Code(v.Code)
}

func (v *verdict) is(word string) bool {
	switch word {
	case "allow":
		return v.Allowed()
	case "deny":
		return !v.Allowed()
	}
	return v.Code == word
}

func (v *verdict) field(name string) (string, bool) {
	switch name {
	case "by":
		return v.Rule, v.Rule != ""
	case "status":
		return strconv.Itoa(v.status), true
	case "over":
		return strings.Join(v.OverRules(), ","), true
	case "stale":
		return v.stale(), true
	case "shadow":
		return strings.Join(v.Shadow, ","), true
	case "ip":
		return v.ClientIP.String(), v.ClientIP.IsValid()
	case "wait":
		return v.Wait.String(), true
	case "retry_after":
		return v.RetryAfter.String(), true
	}
	if v.Binding < 0 || v.Binding >= len(v.Limits) {
		return "", false
	}
	return outcomeField(&v.Limits[v.Binding].Outcome, name)
}

func (v *verdict) String() string {
	if v.Allowed() {
		s := "allow" + show(v, "by", "ip", "remaining", "reset_after")
		if v.Wait > 0 {
			s += show(v, "wait")
		}
		return s + v.showRules()
	}
	return "deny" + show(v, "by", "status", "ip", "remaining", "retry_after") + v.showRules() + " (" + v.Code + ")"
}

// stale says to whom the front may give an answer again that it has kept: to everybody, to the own identity, or to nobody.
func (v *verdict) stale() string {
	switch {
	case v.Stale == nil:
		return ""
	case v.Stale.Identity == "":
		return "public"
	}
	return "own"
}

// showRules shows the rules that only marked or watched, and who may get kept answers, where there is something to show.
func (v *verdict) showRules() (s string) {
	if v.Stale != nil {
		s = show(v, "stale")
	}
	if v.Over != "" {
		s += show(v, "over")
	}
	if len(v.Verdict.Shadow) > 0 {
		s += show(v, "shadow")
	}
	return s
}
