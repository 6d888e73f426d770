package salehttp

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/salehttp/page"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Handler answers everything under [Prefix]. It is safe for concurrent use.
type Handler struct {
	cfg     Config
	sales   Sales
	routes  []route
	cross   *http.CrossOriginProtection
	streams *streams
	tickets *tickets
	pages   showPages
	// documentTag and scriptTag name the versions of the document and of the script for pages.
	documentTag, scriptTag string
	// open ends when Close is called.
	open context.Context
	end  context.CancelFunc
}

// New makes a Handler. It starts no goroutine. The error's code is CodeInvalidArgument.
func New(cfg Config) (*Handler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg, sales: cfg.Sales, cross: http.NewCrossOriginProtection(), streams: newStreams(cfg.MaxStreams, cfg.MaxStreamsPerUser)}
	for _, origin := range cfg.Origins {
		if err := h.cross.AddTrustedOrigin(origin); err != nil || origin == "null" {
			return nil, configError("%q is no origin; give a scheme and a host, like https://shop.example.com", origin)
		}
	}
	limit, err := headgate.ParseLimit(ticketLimit)
	if err != nil {
		return nil, err
	}
	h.tickets = &tickets{keys: cfg.Keys, random: cfg.Rand, now: cfg.Now, limiter: cfg.Limiter, limit: limit}
	h.open, h.end = context.WithCancel(context.Background())
	h.routes, h.documentTag, h.scriptTag = h.table(), entityTag(openAPI), entityTag([]byte(page.Script()))
	return h, nil
}

// Close ends the event streams, and lets no more begin: their clients come back, to another instance. All else is still answered. It does
// not wait; the server's Shutdown does.
func (h *Handler) Close() error {
	h.end()
	return nil
}

// ServeHTTP answers a request. Nothing that goes wrong in it ends the process.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{h: h, w: w, r: r}
	defer func() { a.recovered(recover()) }()
	a.serve()
}

// answer is one request and what it is answered.
type answer struct {
	h *Handler
	w http.ResponseWriter
	r *http.Request
	// args are the parts of the path that are variable.
	key flashsale.Key
	rid string
	// shopper is who asks, on routes that need to know.
	shopper Shopper
	// begun tells that a status was sent.
	begun bool
}

// serve finds the route and lets pass what may use it.
func (a *answer) serve() {
	a.allowOrigin()
	found := a.h.find(a.r.URL.EscapedPath(), a)
	if found == nil {
		a.problem(&fault{code: codeNoRoute})
		return
	}
	if a.r.Method == http.MethodOptions {
		a.options(found)
		return
	}
	run, ok := found.methods[a.r.Method]
	if !ok {
		a.w.Header().Set("Allow", found.allow)
		a.problem(&fault{code: codeMethod})
		return
	}
	if httpverdict.CheckOrigin(a.h.cross, a.r) != nil {
		a.problem(&fault{code: codeCrossOrigin})
		return
	}
	if f := a.checkIDs(); f != nil {
		a.problem(f)
		return
	}
	if found.identity && !a.identify() {
		return
	}
	run(a)
}

// checkIDs says that a part of the path cannot name anything.
func (a *answer) checkIDs() *fault {
	for _, part := range []struct {
		id   string
		code flashsale.Code
	}{{a.key.Sale, flashsale.CodeUnknownSale}, {a.key.SKU, flashsale.CodeUnknownSKU}, {a.rid, flashsale.CodeNotFound}} {
		if part.id != "" && flashsale.CheckID("", part.id) != nil {
			return &fault{code: part.code}
		}
	}
	return nil
}

// identify finds out who asks, and answers those of whom that cannot be said.
func (a *answer) identify() bool {
	shopper, err := a.h.cfg.Identity(a.r)
	if err == nil {
		err = flashsale.CheckUser(shopper.User)
	}
	if err != nil {
		a.h.cfg.Logger.LogAttrs(a.r.Context(), slog.LevelDebug, "nobody is signed in", slog.Any("error", err))
		a.problem(&fault{code: codeUnauthenticated})
		return false
	}
	a.shopper = shopper
	return true
}

// shown answers a sale or a sku that is not there, so that whatever else is asked costs the stores something only if it is.
func (a *answer) shown() bool {
	if err := a.h.sales.CheckShown(a.r.Context(), a.key); err != nil {
		a.failed(err)
		return false
	}
	return true
}

// recovered keeps a panic from everybody but the log. Where an answer has begun, the connection is cut, so that it does not pass for a
// whole one.
func (a *answer) recovered(p any) {
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p) //nolint:forbidigo // net/http's own way to cut a connection
	}
	a.h.cfg.Logger.Error("a panic was caught; the request is answered 500", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	if a.begun {
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's own way to cut a connection
	}
	a.problem(&fault{code: flashsale.CodeInternal})
}
