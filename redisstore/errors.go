package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/redis/rueidis"
)

func newError(code headgate.Code, cause error, format string, args ...any) *headgate.Error {
	return &headgate.Error{Code: code, Charge: -1, Message: "redisstore: " + fmt.Sprintf(format, args...), Err: cause}
}

// ErrConfig is what the error of a bad Config or URL wraps.
var ErrConfig = errors.New("bad configuration")

// ErrRefused is what the error of [New] wraps if Redis was reached and refuses for good, such as for a wrong password.
var ErrRefused = errors.New("refused")

// ErrBreakerOpen is what the error wraps of a call that was not made, since [Config].Breaker says that its node is not worth asking.
var ErrBreakerOpen = errors.New("breaker open")

// ErrNotServing is what the error of [Store.Probe] wraps if a node serves nothing of this store, such as a primary that was
// replaced. It has a method Gone() bool that answers true.
var ErrNotServing error = notServing{}

type notServing struct{}

func (notServing) Error() string { return "the node serves no keys of this store" }

// Gone tells that the node need not be asked again.
func (notServing) Gone() bool { return true }

// refusal is an answer of Redis that is for good.
type refusal struct{ error }

func (r refusal) Unwrap() error        { return r.error }
func (r refusal) Is(target error) bool { return target == ErrRefused }

func configErrorf(format string, args ...any) error {
	return fmt.Errorf("redisstore: "+format+": %w", append(args, ErrConfig)...)
}

var errNoAnswer = errors.New("Redis did not answer in time")

// fate is what an error of a call means for the takes that were in it.
type fate uint8

const (
	// fateRepeat: Redis refused for the moment and nothing ran; it is asked again until the deadline.
	fateRepeat fate = iota
	// fateApart: as fateRepeat, and the takes are asked one by one, since some of their keys are on the move.
	fateApart
	// fateLoad: Redis does not know the script; it is sent whole.
	fateLoad
	// fateRefused: Redis refuses, and will until somebody does something. Nothing ran.
	fateRefused
	// fateUnsent: nothing was sent.
	fateUnsent
	// fateUnknown: it may or may not have run, and is never repeated.
	fateUnknown
)

// replies are the errors that Redis answers with, by their first word, with what to do about those that stay.
var replies = [...]struct {
	word string
	fate fate
	hint string
}{
	{"NOSCRIPT", fateLoad, ""},
	{"MOVED", fateRepeat, "this is a node of a cluster; connect with redis+cluster:// or Config.Cluster"},
	{"ASK", fateRepeat, "this is a node of a cluster; connect with redis+cluster:// or Config.Cluster"},
	{"TRYAGAIN", fateApart, "the keys of this take are being moved between nodes"},
	{"CROSSSLOT", fateRefused, "this is a cluster; connect with redis+cluster:// or Config.Cluster"},
	{"LOADING", fateRepeat, "Redis is reading its data after a start"},
	{"READONLY", fateRepeat, "this node is a replica; a failover may be under way"},
	{"CLUSTERDOWN", fateRepeat, "the cluster does not serve this slot"},
	{"MASTERDOWN", fateRepeat, "the replica has lost its primary"},
	{"BUSY", fateRepeat, "another script keeps Redis busy"},
	{"NOREPLICAS", fateRepeat, "fewer replicas are connected than min-replicas-to-write asks for"},
	{"OOM", fateRefused, "Redis is out of memory; raise maxmemory, keep maxmemory-policy noeviction"},
	{"MISCONF", fateRefused, "Redis cannot save its data and refuses writes; see its log"},
	{"NOAUTH", fateRefused, "Redis asks for a password; set Config.Password or put it in the URL"},
	{"WRONGPASS", fateRefused, "the user name or the password is wrong"},
	{"NOPERM", fateRefused, noRight},
	{"ERR", fateRefused, ""},
}

// judge tells what an error means. Errors of Redis are known by their text, whatever client they come through.
func judge(err error) (f fate, hint string) {
	text := err.Error()
	for _, r := range &replies {
		if rest, ok := strings.CutPrefix(text, r.word); ok && (rest == "" || rest[0] == ' ') {
			if r.word == "ERR" {
				return judgeScript(text)
			}
			return r.fate, r.hint
		}
	}
	var reply interface{ RedisError() }
	if errors.As(err, &reply) {
		return judgeScript(text)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return fateUnsent, "cannot connect"
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fateUnsent, "cannot find the host"
	}
	return fateUnknown, ""
}

// noRight is the hint for what an ACL forbids.
const noRight = "the user may not do this; docs/redis.md has the ACL rule that it needs"

// judgeScript reads the error of a script. Before Redis 7 it has the word of the command's error further inside.
func judgeScript(text string) (fate, string) {
	if strings.Contains(text, "user executing the script") {
		return fateRefused, noRight
	}
	for _, r := range &replies {
		if r.word != "ERR" && strings.Contains(text, " -"+r.word+" ") {
			return r.fate, r.hint
		}
	}
	return fateRefused, "Redis refused the script"
}

// connectError says why there is no connection. The client's errors have no password in them.
func connectError(err error) error {
	f, hint := judge(err)
	if f == fateUnknown {
		if hint = refusesConnection(err); hint != "" {
			f = fateRefused
		}
	}
	switch {
	case f == fateRefused:
		return newError(headgate.CodeUnavailable, refusal{err}, "%s", cmp.Or(hint, "Redis refuses"))
	case f != fateUnknown && hint != "":
		return newError(headgate.CodeUnavailable, err, "%s", hint)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return newError(headgate.CodeUnavailable, err, "cannot connect in time")
	}
	return newError(headgate.CodeUnavailable, err, "cannot connect")
}

// refusesConnection tells what is wrong where an error of connecting is a refusal for good though it has none of the words of
// replies, "" where it is none. Of the client's own errors those of Redis have lost their "ERR".
func refusesConnection(err error) string {
	var reply *rueidis.RedisError
	if errors.As(err, &reply) && !reply.IsNil() && !strings.Contains(reply.Error(), "max number of clients") {
		return "Redis refuses the connection"
	}
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		op          *net.OpError
	)
	switch {
	case errors.As(err, &certificate):
		return "the certificate of Redis is not believed"
	case errors.As(err, &record):
		return "Redis does not speak TLS at this port; leave TLS out, or name the port that has it"
	case errors.As(err, &op) && op.Op == "remote error": // which is how crypto/tls says that the other side has given up
		return "Redis refuses the TLS handshake"
	}
	return ""
}

// callError is the error of takes whose call failed for good.
func callError(f fate, hint string, cause error) *headgate.Error {
	switch f {
	case fateUnsent:
		if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) { // a dial that took too long is one
			cause = errors.New(cause.Error())
		}
		return newError(headgate.CodeUnavailable, cause, "%s; nothing was charged", hint)
	case fateUnknown:
		if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
			cause = errNoAnswer // that context was the call's, not the caller's
		}
		return newError(headgate.CodeIndeterminate, cause, "the request was sent and no answer came: it may have been charged")
	}
	if hint == "" {
		hint = "Redis refuses"
	}
	return newError(headgate.CodeUnavailable, cause, "%s; nothing was charged", hint)
}

// leaveError is the error of a caller that leaves before there is an answer. own is what ended the caller's context, nil
// if the store's time was up; refusal is what Redis last answered, nil if it has not been asked or has not answered.
func leaveError(sent bool, own error, refusal *headgate.Error) *headgate.Error {
	switch {
	case sent:
		return newError(headgate.CodeIndeterminate, own, "no answer in time: it may have been charged")
	case refusal != nil:
		return refusal
	}
	return newError(headgate.CodeTimeout, own, "the time was up before anything was sent; nothing was charged")
}

// isOwn tells whether the caller's context ended a call.
func isOwn(err *headgate.Error) bool {
	return errors.Is(err.Err, context.Canceled) || errors.Is(err.Err, context.DeadlineExceeded)
}
