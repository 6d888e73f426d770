package httppay

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
)

// Client is the sale's side of the protocol. It is safe for concurrent use. Its errors are *flashsale.Error: CodeUnavailable if the
// service was not reached, has failed, or has answered what cannot be understood, so that nobody knows what has happened; the same
// call can be made again.
type Client struct {
	cfg       Config
	base      *url.URL
	http      http.Client
	transport *http.Transport // nil if it is somebody else's
	turns     chan struct{}
	secrets   atomic.Pointer[[][]byte]
	closed    atomic.Bool
}

var _ flashsale.Payments = (*Client)(nil)

// New returns a client, or says what is wrong with its Config. It asks nothing of the service yet.
func New(cfg Config) (*Client, error) {
	base, err := parseBase(cfg.URL)
	if err != nil {
		return nil, err
	}
	if err := checkReturn(cfg.ReturnURL); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg.withDefaults(), base: base}
	if err := c.SetSecrets(cfg.Secrets...); err != nil {
		return nil, err
	}
	c.turns = make(chan struct{}, c.cfg.MaxCalls)
	c.http = http.Client{Transport: c.cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.cfg.Transport == nil {
		c.transport = newTransport(c.cfg.MaxCalls)
		c.http.Transport = c.transport
	}
	return c, nil
}

func newTransport(conns int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost, t.MaxIdleConns = conns, conns, conns
	t.MaxResponseHeaderBytes = maxBody
	t.DisableCompression = true // answers are small, and a bound on their bytes is one on what is read
	return t
}

// SetSecrets changes the secrets. To rotate, have old and new in use together, on both sides, for a while.
func (c *Client) SetSecrets(secrets ...[]byte) error {
	return setSecrets(&c.secrets, secrets)
}

// setSecrets puts secrets in use, copies of them.
func setSecrets(in *atomic.Pointer[[][]byte], secrets [][]byte) error {
	if err := CheckSecrets(secrets...); err != nil {
		return err
	}
	own := make([][]byte, len(secrets))
	for i, s := range secrets {
		own[i] = append([]byte(nil), s...)
	}
	in.Store(&own)
	return nil
}

// Close gives the connections back. Later calls fail with CodeClosed.
func (c *Client) Close() error {
	c.closed.Store(true)
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
	return nil
}

// Create implements [flashsale.Payments]. Codes: CodeConflict if there is an intent of this key with another amount or currency,
// CodeInvalidArgument, CodeUnavailable.
func (c *Client) Create(ctx context.Context, in *flashsale.Intent) (*flashsale.ProviderPayment, error) {
	body := &intentBody{
		Amount: &in.Amount, Currency: in.Currency, RID: ridOf(in.Key), OrderID: in.OrderID, User: in.User, ReturnURL: in.ReturnURL,
	}
	if !utf8.ValidString(in.User) { // such a user could not be shown anyway
		body.User = ""
	}
	if body.ReturnURL == "" {
		body.ReturnURL = c.returnURL(body)
	}
	return c.payment(ctx, &call{method: http.MethodPut, intent: in.Key, body: body, codes: createCodes})
}

// Query implements [flashsale.Payments].
func (c *Client) Query(ctx context.Context, intentKey string) (*flashsale.ProviderPayment, error) {
	return c.payment(ctx, &call{method: http.MethodGet, intent: intentKey, codes: lookCodes})
}

// Void implements [flashsale.Payments].
func (c *Client) Void(ctx context.Context, intentKey string) (*flashsale.ProviderPayment, error) {
	return c.payment(ctx, &call{method: http.MethodPost, intent: intentKey, action: "void", codes: lookCodes})
}

// Refund implements [flashsale.Payments]. Of what was not captured it is CodeInvalidState.
func (c *Client) Refund(ctx context.Context, intentKey string) (*flashsale.ProviderPayment, error) {
	return c.payment(ctx, &call{method: http.MethodPost, intent: intentKey, action: "refund", codes: refundCodes})
}

// List implements [flashsale.Payments]. A limit outside 1 to 1000 stands for the nearer one.
func (c *Client) List(ctx context.Context, since time.Time, cursor string, limit int) (page []flashsale.ProviderPayment, next string, err error) {
	limit = min(max(limit, 1), MaxPage)
	query := url.Values{"since": {since.UTC().Format(time.RFC3339Nano)}, "limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	in := &call{method: http.MethodGet, query: query.Encode(), codes: listCodes, most: maxList}
	text, err := c.ask(ctx, in)
	if err != nil {
		return nil, "", err
	}
	return c.readPage(text, cursor, limit)
}

// Webhook implements [flashsale.Payments].
func (c *Client) Webhook(header map[string][]string, body []byte) (*flashsale.ProviderEvent, error) {
	return paywire.ReadMessage(&paywire.Verifier{Secrets: *c.secrets.Load(), Tolerance: c.cfg.Tolerance, Now: c.cfg.Now()}, header, body)
}

// payment makes a call that is about one intent.
func (c *Client) payment(ctx context.Context, in *call) (*flashsale.ProviderPayment, error) {
	if err := checkKey(in.intent); err != nil {
		return nil, err
	}
	text, err := c.ask(ctx, in)
	if err != nil {
		return nil, err
	}
	return c.readPayment(text, in.intent)
}

// intentBody is what an intent is made of. Amount is always there.
type intentBody struct {
	Amount    *int64 `json:"amount"`
	Currency  string `json:"currency"`
	RID       string `json:"rid"`
	OrderID   string `json:"order_id,omitempty"`
	User      string `json:"user,omitempty"`
	ReturnURL string `json:"return_url,omitempty"`
}

// ridOf is the reservation that an intent is for: its key without the number of the attempt.
func ridOf(key string) string {
	if i := strings.LastIndexByte(key, ':'); i > 0 {
		return key[:i]
	}
	return key
}

func (c *Client) returnURL(in *intentBody) string {
	return strings.NewReplacer("{rid}", url.QueryEscape(in.RID), "{order}", url.QueryEscape(in.OrderID)).Replace(c.cfg.ReturnURL)
}
