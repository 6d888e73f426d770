package httppay

import (
	_ "embed"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI is the protocol's document, in OpenAPI 3.1.
func OpenAPI() []byte { return slices.Clone(openAPI) }

// route is a method of a path.
type route struct {
	method, path string
	do           func(*answer)
}

func routes() []route {
	return []route{
		{http.MethodGet, "/intents", (*answer).list},
		{http.MethodPut, "/intents/{intent}", (*answer).create},
		{http.MethodGet, "/intents/{intent}", (*answer).query},
		{http.MethodPost, "/intents/{intent}/void", (*answer).void},
		{http.MethodPost, "/intents/{intent}/refund", (*answer).refund},
	}
}

// find returns the routes of a path, by method, and the intent that the path names.
func find(path string) (byMethod map[string]func(*answer), intent string) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(parts) > 1 {
		intent = parts[1]
		parts[1] = "{intent}"
		if checkKey(intent) != nil {
			return nil, ""
		}
	}
	form := "/" + strings.Join(parts, "/")
	for _, r := range routes() {
		if r.path != form {
			continue
		}
		if byMethod == nil {
			byMethod = map[string]func(*answer){}
		}
		byMethod[r.method] = r.do
	}
	return byMethod, intent
}

// Codes of this package, beside those of flashsale.
const (
	codeNoRoute   flashsale.Code = "no_such_path"
	codeMethod    flashsale.Code = "method_not_allowed"
	codeMediaType flashsale.Code = "unsupported_media_type"
	codeTooLarge  flashsale.Code = "body_too_large"
	// codeBodyTimeout is of a request whose body stalls.
	codeBodyTimeout flashsale.Code = "body_timeout"
	codeBusy                       = flashsale.CodeBusy
)

// statuses are those that each code comes with. What is missing is answered as CodeInternal.
var statuses = map[flashsale.Code]int{
	flashsale.CodeInvalidArgument:  http.StatusBadRequest,
	flashsale.CodeInvalidSignature: http.StatusUnauthorized,
	codeNoRoute:                    http.StatusNotFound,
	flashsale.CodeUnknownPayment:   http.StatusNotFound,
	codeMethod:                     http.StatusMethodNotAllowed,
	flashsale.CodeConflict:         http.StatusConflict,
	flashsale.CodeInvalidState:     http.StatusConflict,
	codeBodyTimeout:                http.StatusRequestTimeout,
	codeTooLarge:                   http.StatusRequestEntityTooLarge,
	codeMediaType:                  http.StatusUnsupportedMediaType,
	flashsale.CodeInternal:         http.StatusInternalServerError,
	codeBusy:                       http.StatusServiceUnavailable,
	flashsale.CodeUnavailable:      http.StatusServiceUnavailable,
}

// failed answers an error of the payments'.
func (a *answer) failed(err error) {
	code, detail := flashsale.CodeOf(err), err.Error()
	if code == flashsale.CodeClosed { // another process may be there already
		code = flashsale.CodeUnavailable
	}
	if _, known := statuses[code]; !known || code == flashsale.CodeInternal {
		a.h.cfg.Logger.LogAttrs(a.r.Context(), slog.LevelError, "a request for a payment has failed", slog.Any("error", err))
		code, detail = flashsale.CodeInternal, "something went wrong within"
	}
	a.problem(code, detail)
}

// problem answers what went wrong.
func (a *answer) problem(code flashsale.Code, detail string) {
	status := statuses[code]
	switch status {
	case http.StatusServiceUnavailable:
		a.w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		a.w.Header().Set("Www-Authenticate", `Headgate realm="payments"`)
	}
	a.json(status, "application/problem+json", &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code})
}
