package natsrelay

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Codes of the server that the client has no name for.
const wrongStream jetstream.ErrorCode = 10060 // another stream would take it

// judge says what an error of a message means: CodeInvalidArgument if it is the message's own, for good.
func (c *call) judge(ctx context.Context, m *nats.Msg, err error) error {
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject), isAPI && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return refused(m, fmt.Sprintf("its %d bytes on %s are refused", len(m.Data), m.Subject), err)
	case isAPI && api.ErrorCode == wrongStream, errors.Is(err, jetstream.ErrNoStreamResponse):
		return c.judgeUntaken(ctx, m, err)
	}
	return unavailable("publishing "+m.Header.Get(jetstream.MsgIDHeader), err)
}

// judgeUntaken finds out why the stream did not take a message: it has other subjects, or does not answer, or there is none.
func (c *call) judgeUntaken(ctx context.Context, m *nats.Msg, err error) error {
	if c.subjects == nil {
		cfg, streamErr := c.relay.stream(ctx)
		if streamErr != nil {
			return streamErr
		}
		c.subjects = cfg.Subjects
	}
	name := c.relay.cfg.Stream
	if covers(c.subjects, m.Subject) {
		return unavailable("the stream "+name+" does not answer", err)
	}
	return refused(m, fmt.Sprintf("the stream %s takes %q and not %s", name, c.subjects, m.Subject), err)
}

// openError says why there is no connection to be had. The text of an error about a URL quotes it, with the password in it.
func openError(err error) error {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return invalid("the URL of a server is none: is a character in the user or password not percent-encoded, or the port not a number?")
	}
	return &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "natsrelay: connecting", Err: err}
}

func invalid(format string, args ...any) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "natsrelay: " + fmt.Sprintf(format, args...)}
}

func refused(m *nats.Msg, why string, err error) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "natsrelay: event " + m.Header.Get(jetstream.MsgIDHeader) + ": " + why, Err: err}
}

func unavailable(what string, err error) error {
	return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "natsrelay: " + what, Err: err}
}
