package httppay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
)

// Bounds of what is read, in bytes: an answer about one payment, or one that is no success; and a page of the list.
const (
	maxBody = 64 << 10
	maxList = 4 << 20
	maxURL  = 2048
)

// call is one call of the service.
type call struct {
	method string
	// intent is the key it is about, "" for the list; action is what to do with it, "" for the intent itself.
	intent, action string
	query          string
	body           any
	// codes are the refusals that mean what they say; all others leave open what has happened.
	codes map[flashsale.Code]int
	// most is how many bytes the answer has at most; 0 stands for maxBody.
	most int64
}

// target is the URL of a call. A key that was checked stands in a path as it is.
func (c *call) target(base *url.URL) string {
	path := "/intents"
	if c.intent != "" {
		path += "/" + c.intent
	}
	if c.action != "" {
		path += "/" + c.action
	}
	if c.query != "" {
		path += "?" + c.query
	}
	return base.String() + path
}

// ask makes a call, in its turn and its time, and returns the body of a success.
func (c *Client) ask(ctx context.Context, in *call) ([]byte, error) {
	if c.closed.Load() {
		return nil, &flashsale.Error{Code: flashsale.CodeClosed, Message: "the client of the payment service has been closed"}
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return nil, unavailable(ctx.Err(), "the payment service was not asked: %d calls are under way already", c.cfg.MaxCalls)
	}
	r, err := c.request(ctx, in)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, unavailable(plain(err), "the payment service does not answer")
	}
	defer answer.Body.Close()
	most := int64(maxBody)
	if answer.StatusCode == http.StatusOK && in.most > 0 {
		most = in.most
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, unavailable(plain(err), "the answer of the payment service breaks off")
	case int64(len(text)) > most:
		return nil, unavailable(nil, "the answer of the payment service has more than %d bytes", most)
	case answer.StatusCode == http.StatusOK, answer.StatusCode == http.StatusCreated:
		return text, nil
	}
	return nil, refusal(in, answer, text)
}

// request makes the request and signs it.
func (c *Client) request(ctx context.Context, in *call) (*http.Request, error) {
	var text []byte
	if in.body != nil {
		var err error
		if text, err = json.Marshal(in.body); err != nil {
			return nil, invalidf("the intent cannot be written: %v", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, in.method, in.target(c.base), bytes.NewReader(text))
	if err != nil {
		return nil, invalidf("the request cannot be made: %v", plain(err))
	}
	if in.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, application/problem+json")
	r.Header.Set("User-Agent", "headgate")
	signed := &paywire.Request{Method: in.method, Target: r.URL.RequestURI(), Body: text}
	r.Header.Set(paywire.RequestHeader, paywire.SignRequest(*c.secrets.Load(), c.cfg.Now(), signed))
	// Where a connection that was kept turns out to be closed, net/http makes the call once more on another. A header without values
	// tells it that this is right, and is not sent.
	r.Header["Idempotency-Key"] = nil
	return r, nil
}

// plain is an error of net/http without the URL in it.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func unavailable(err error, format string, args ...any) error {
	return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: fmt.Sprintf(format, args...), Err: err}
}
