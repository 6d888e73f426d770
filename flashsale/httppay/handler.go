package httppay

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
	"github.com/headgate-io/headgate/internal/jsonbody"
)

// DefaultMaxRequests is the default of HandlerConfig.MaxRequests.
const DefaultMaxRequests = 256

// HandlerConfig says what is served. Payments and Secrets have no default.
type HandlerConfig struct {
	// Payments does what is asked for.
	Payments flashsale.Payments
	// Secrets verify requests, any of them: 1 to 8, of 32 to 1024 bytes. What sends webhooks signs with the same.
	Secrets [][]byte
	// Prefix is the path below which it is served, such as "/v1". Default "".
	Prefix string
	// Tolerance is how old, or how far ahead, a request's timestamp may be. Default 5 min.
	Tolerance time.Duration
	// MaxRequests bounds the requests at a time; further ones are answered 503. Default 256.
	MaxRequests int
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger gets what fails within. Default: nobody.
	Logger *slog.Logger
}

// Handler is the side of the payment service. It is safe for concurrent use. Nothing but its document is answered to who has not
// signed. The server around it bounds the time that a client takes for its request.
type Handler struct {
	cfg     HandlerConfig
	turns   chan struct{}
	secrets atomic.Pointer[[][]byte]
}

// NewHandler returns a handler, or says what is wrong with its Config.
func NewHandler(cfg HandlerConfig) (*Handler, error) {
	if cfg.Payments == nil {
		return nil, invalidf("a payment service without payments: HandlerConfig.Payments is nil")
	}
	if cfg.Prefix != "" && (!strings.HasPrefix(cfg.Prefix, "/") || strings.HasSuffix(cfg.Prefix, "/")) {
		return nil, invalidf("the prefix of a payment service begins with a slash and does not end with one")
	}
	if cfg.Tolerance <= 0 {
		cfg.Tolerance = paywire.DefaultTolerance
	}
	if cfg.MaxRequests <= 0 {
		cfg.MaxRequests = DefaultMaxRequests
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{cfg: cfg, turns: make(chan struct{}, cfg.MaxRequests)}
	if err := h.SetSecrets(cfg.Secrets...); err != nil {
		return nil, err
	}
	return h, nil
}

// SetSecrets changes the secrets that verify requests. To rotate, have old and new in use together, on both sides, for a while.
func (h *Handler) SetSecrets(secrets ...[]byte) error { return setSecrets(&h.secrets, secrets) }

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{h: h, w: w, r: r}
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	default:
		a.problem(codeBusy, "too many requests at a time")
		return
	}
	path, inside := strings.CutPrefix(r.URL.EscapedPath(), h.cfg.Prefix)
	if inside && path == "/openapi.json" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		a.send(http.StatusOK, "application/json", OpenAPI())
		return
	}
	if !a.verify() {
		return
	}
	byMethod, intent := find(path)
	do := byMethod[r.Method]
	a.intent = intent
	switch {
	case !inside || byMethod == nil:
		a.problem(codeNoRoute, "there is nothing at this path")
	case do == nil:
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(byMethod)), ", "))
		a.problem(codeMethod, "this path is asked by another method")
	default:
		do(a)
	}
}

// answer is one request and what comes of it.
type answer struct {
	h      *Handler
	w      http.ResponseWriter
	r      *http.Request
	text   []byte
	intent string
}

// verify reads the body and reports whether the request is signed.
func (a *answer) verify() bool {
	text, bad := jsonbody.Read(a.w, a.r, maxBody)
	if bad != nil {
		a.unread(bad)
		return false
	}
	a.text = text
	v := paywire.Verifier{Secrets: *a.h.secrets.Load(), Tolerance: a.h.cfg.Tolerance, Now: a.h.cfg.Now()}
	if err := v.VerifyRequest(a.r.Header, &paywire.Request{Method: a.r.Method, Target: a.r.RequestURI, Body: text}); err != nil {
		a.problem(flashsale.CodeInvalidSignature, err.Error())
		return false
	}
	return true
}

// unread answers a body that could not be read.
func (a *answer) unread(bad *jsonbody.Fault) {
	switch bad.Kind {
	case jsonbody.TooLarge:
		a.problem(codeTooLarge, "the body has more than "+strconv.FormatInt(bad.Limit, 10)+" bytes")
	case jsonbody.Stalled:
		a.problem(codeBodyTimeout, "the body did not come in its time")
	default:
		a.problem(flashsale.CodeInvalidArgument, "the body breaks off")
	}
}

func (a *answer) create() {
	if !jsonbody.Is(a.r.Header) {
		a.problem(codeMediaType, "an intent is application/json")
		return
	}
	var body intentBody
	if err := json.NewDecoder(bytes.NewReader(a.text)).Decode(&body); err != nil || body.Amount == nil {
		a.problem(flashsale.CodeInvalidArgument, "the intent cannot be read, or has no amount")
		return
	}
	in := &flashsale.Intent{Key: a.intent, Amount: *body.Amount, Currency: body.Currency, OrderID: body.OrderID, User: body.User, ReturnURL: body.ReturnURL}
	a.payment(a.h.cfg.Payments.Create(a.r.Context(), in))
}

func (a *answer) query() { a.payment(a.h.cfg.Payments.Query(a.r.Context(), a.intent)) }

func (a *answer) void() { a.payment(a.h.cfg.Payments.Void(a.r.Context(), a.intent)) }

func (a *answer) refund() { a.payment(a.h.cfg.Payments.Refund(a.r.Context(), a.intent)) }

// pageBody is a page of the list.
type pageBody struct {
	Payments []paywire.Payment `json:"payments"`
	Next     string            `json:"next"`
}

func (a *answer) list() {
	query := a.r.URL.Query()
	since, err := time.Parse(time.RFC3339, query.Get("since"))
	limit := 100
	if text := query.Get("limit"); err == nil && text != "" {
		limit, err = strconv.Atoi(text)
	}
	if err != nil || limit < 1 || limit > MaxPage || len(query.Get("cursor")) > maxCursor {
		a.problem(flashsale.CodeInvalidArgument, "since is a time of RFC 3339, limit 1 to "+strconv.Itoa(MaxPage)+", and cursor what the page before said")
		return
	}
	page, next, err := a.h.cfg.Payments.List(a.r.Context(), since, query.Get("cursor"), limit)
	if err != nil {
		a.failed(err)
		return
	}
	body := pageBody{Payments: make([]paywire.Payment, len(page)), Next: next}
	for i := range page {
		body.Payments[i] = paywire.PaymentOf(&page[i])
	}
	a.json(http.StatusOK, "application/json", &body)
}

func (a *answer) payment(p *flashsale.ProviderPayment, err error) {
	if err != nil {
		a.failed(err)
		return
	}
	body := paywire.PaymentOf(p)
	a.json(http.StatusOK, "application/json", &body)
}

func (a *answer) json(status int, contentType string, doc any) {
	text, err := json.Marshal(doc)
	if err != nil { // such as a time beyond all years
		a.h.cfg.Logger.LogAttrs(a.r.Context(), slog.LevelError, "an answer cannot be written", slog.Any("error", err))
		status, text = http.StatusInternalServerError, []byte("{}")
	}
	a.send(status, contentType, text)
}

func (a *answer) send(status int, contentType string, text []byte) {
	header := a.w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	a.w.WriteHeader(status)
	if a.r.Method != http.MethodHead {
		_, _ = a.w.Write(text) // a client that has gone away asks again
	}
}
