package redisstock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/redis/rueidis"
)

func failf(code flashsale.Code, cause error, format string, args ...any) *flashsale.Error {
	return &flashsale.Error{Code: code, Message: "redisstock: " + fmt.Sprintf(format, args...), Err: cause}
}

var errNoAnswer = errors.New("Redis did not answer in time")

// hints say what to do about what Redis answers, by the first word of the answer.
var hints = [...]struct{ word, hint string }{
	{"MOVED", "this is a node of a cluster; set Config.Cluster"},
	{"ASK", "this is a node of a cluster; set Config.Cluster"},
	{"CROSSSLOT", "this is a cluster; set Config.Cluster"},
	{"TRYAGAIN", "the keys of this sku are being moved between nodes"},
	{"LOADING", "Redis is reading its data after a start"},
	{"READONLY", "this node is a replica; a failover may be under way"},
	{"CLUSTERDOWN", "the cluster does not serve this slot"},
	{"MASTERDOWN", "the replica has lost its primary"},
	{"BUSY", "another script keeps Redis busy"},
	{"NOREPLICAS", "fewer replicas are connected than min-replicas-to-write asks for"},
	{"OOM", "Redis is out of memory; raise maxmemory, keep maxmemory-policy noeviction"},
	{"MISCONF", "Redis cannot save its data and refuses writes; see its log"},
	{"NOAUTH", "Redis asks for a password; set Config.Password"},
	{"WRONGPASS", "the user name or the password is wrong"},
	{"NOPERM", "the user may not do this"},
}

// callError says what an error of a call means. What Redis itself refuses has not run: the scripts ask first and write then.
func callError(err error) *flashsale.Error {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return replyError(reply.Error())
	}
	var (
		op  *net.OpError
		dns *net.DNSError
	)
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return failf(flashsale.CodeUnavailable, plain(err), "cannot connect; nothing was changed")
	case errors.As(err, &dns):
		return failf(flashsale.CodeUnavailable, plain(err), "cannot find the host; nothing was changed")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // of the call, not the caller's
		return noAnswer(nil)
	}
	return failf(flashsale.CodeUnavailable, err, "the request was sent and no answer came: it may have run")
}

// noAnswer is the error of a caller that leaves. own is what ended its context, nil if the stock's time was up.
func noAnswer(own error) *flashsale.Error {
	if own == nil {
		own = errNoAnswer
	}
	return failf(flashsale.CodeUnavailable, own, "no answer in time: it may have run")
}

// plain takes away that a dial ended for its own time-out, which is not the caller's.
func plain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.New(err.Error())
	}
	return err
}

func replyError(text string) *flashsale.Error {
	cause := errors.New(text)
	for _, h := range &hints {
		// Before Redis 7 the word of a command's error stands inside that of its script.
		if text == h.word || strings.HasPrefix(text, h.word+" ") || strings.Contains(text, " -"+h.word+" ") {
			return failf(flashsale.CodeUnavailable, cause, "%s; nothing was changed", h.hint)
		}
	}
	if strings.Contains(text, "user executing the script") {
		return failf(flashsale.CodeUnavailable, cause, "the user may not run what the scripts need; nothing was changed")
	}
	return failf(flashsale.CodeInternal, cause, "Redis refused a script; is there foreign data under these keys?")
}

// connectError says why there is no connection. The client's errors have no password in them.
func connectError(err error) *flashsale.Error {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		f := replyError(reply.Error())
		if f.Err != nil && refused(f.Err.Error()) {
			f.Code = flashsale.CodeInvalidArgument // asking again does not help
		}
		return f
	}
	return failf(flashsale.CodeUnavailable, plain(err), "cannot connect")
}

// refused tells whether Redis does not let somebody in: it does so until the user or the password is another one.
func refused(text string) bool {
	for _, word := range []string{"NOAUTH ", "WRONGPASS ", "NOPERM "} {
		if strings.HasPrefix(text, word) {
			return true
		}
	}
	return false
}

func closedError() *flashsale.Error {
	return failf(flashsale.CodeClosed, nil, "the stock has been closed")
}

func closedMeanwhile() *flashsale.Error {
	return failf(flashsale.CodeClosed, nil, "the stock was closed before there was an answer: it may have run")
}

func notBegun(cause error) *flashsale.Error {
	return failf(flashsale.CodeUnavailable, cause, "the time was up before anything was sent; nothing was changed")
}

func badReply(what string) *flashsale.Error {
	return failf(flashsale.CodeInternal, nil, "Redis answered %s in a form that this version does not know", what)
}

func staleError(key flashsale.Key, epoch int64, pointer string) *flashsale.Error {
	if pointer == "" {
		pointer = "no epoch"
	}
	return failf(flashsale.CodeStaleEpoch, nil, "the stock of %s is at %s, not at %d; read the epoch again from SQL", key, pointer, epoch)
}

func rebuildingError(key flashsale.Key, epoch int64) *flashsale.Error {
	return failf(flashsale.CodeRebuilding, nil, "the stock of %s is being loaded in epoch %d; ask again", key, epoch)
}
