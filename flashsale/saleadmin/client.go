package saleadmin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// maxAnswer bounds what a client reads, in bytes.
const maxAnswer = 64 << 20

// ClientConfig says which listener is asked, and as whom. URL and Token have no default.
type ClientConfig struct {
	// URL is that of the admin listener, such as http://127.0.0.1:9090.
	URL string
	// Token is a bearer token. It is sent to this URL alone: redirects are not followed.
	Token string
	// Transport makes the calls. Default http.DefaultTransport.
	Transport http.RoundTripper
	// Timeout bounds a call, besides its context. Default 5 min, which a rebuild may take.
	Timeout time.Duration
}

// Client asks the API. It is safe for concurrent use. A refusal is a *Problem; other errors leave open whether a change was made, and the
// same call with the same operation id can be repeated.
type Client struct {
	base  string
	token string
	http  http.Client
}

// NewClient returns a client, or says what is wrong with its URL.
func NewClient(cfg ClientConfig) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("that is no URL of an admin listener; write one such as http://127.0.0.1:9090")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = slowFor
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/"), token: cfg.Token}
	c.http = http.Client{Transport: cfg.Transport, Timeout: cfg.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// NewOperationID returns a name for an operation, so that the call that makes it can be repeated.
func NewOperationID() string { return newOperationID() }

// call is one request.
type call struct {
	method, path string
	query        url.Values
	body         any
	// id is the Idempotency-Key, "" lets the server name the operation.
	id string
}

func ask[T any](ctx context.Context, c *Client, in call) (*T, error) {
	r, err := c.request(ctx, &in)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer breaks off: %w", err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case answer.StatusCode/100 != 2:
		return nil, refusal(answer, body)
	}
	out := new(T)
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return out, nil
}

func (c *Client) request(ctx context.Context, in *call) (*http.Request, error) {
	target := c.base + Prefix + in.path
	if len(in.query) > 0 {
		target += "?" + in.query.Encode()
	}
	var body io.Reader
	if in.body != nil {
		text, err := json.Marshal(in.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, in.method, target, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if in.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if in.id != "" {
		r.Header.Set(IdempotencyKey, in.id)
	}
	return r, nil
}

// ofGateway tells that a gateway has no such path: its listener was taken for the admin listener.
func ofGateway(answer *http.Response, p *Problem) bool {
	return answer.StatusCode == http.StatusNotFound && p.Code == string(flashsale.CodeNotFound) && answer.Header.Get(httpverdict.HeaderID) != ""
}

// refusal is the problem that was answered, or one made of an answer that is not of this API.
func refusal(answer *http.Response, body []byte) *Problem {
	p := &Problem{}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if kind == "application/problem+json" && json.Unmarshal(body, p) == nil && p.Code != "" && !ofGateway(answer, p) {
		p.Status = answer.StatusCode
		return p
	}
	p = &Problem{Status: answer.StatusCode, Title: http.StatusText(answer.StatusCode), Code: "status_" + strconv.Itoa(answer.StatusCode)}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		p.Code, p.Detail = "unauthorized", "the token is not known there"
	case http.StatusNotFound:
		p.Code, p.Detail = "no_sales", "there is an HTTP server, and it sells nothing"
	default:
		p.Detail = "the answer is " + answer.Status
	}
	return p
}

func id(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(part))
	}
	return b.String()
}

// only is a query of one parameter, none if it is empty.
func only(name, value string) url.Values {
	if value == "" {
		return nil
	}
	return url.Values{name: {value}}
}

// count is a parameter above 0.
func count(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
