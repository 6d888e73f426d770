package saleadmin

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// request is a request under way.
type request struct {
	*api
	w     http.ResponseWriter
	r     *http.Request
	actor Actor
	// command is what a change was asked for with, once it is known.
	command *engine.Command
}

// key is the sku that the path names.
func (q *request) key() flashsale.Key {
	return flashsale.Key{Sale: q.r.PathValue("sale"), SKU: q.r.PathValue("sku")}
}

// query returns the parameters of a request, which must be among those that there are, each once.
func (q *request) query(names ...string) (url.Values, error) {
	values, err := url.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return nil, invalid(FieldError{"query", "it cannot be read: " + err.Error()})
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for name, given := range values {
		switch {
		case !known[name]:
			there := "there is no such parameter here"
			if len(names) > 0 {
				there += "; there is " + strings.Join(names, ", ")
			}
			return nil, invalid(FieldError{shorten(name), there})
		case len(given) > 1:
			return nil, invalid(FieldError{name, "it is given more than once"})
		}
	}
	return values, nil
}

// number is a parameter between 1 and most.
func number(values url.Values, name string, fallback, most int) (int, error) {
	text := values.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid(FieldError{name, "give 1 to " + strconv.Itoa(most)})
	}
	return n, nil
}

// answer writes a document.
func (q *request) answer(status int, v any) error {
	h := q.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	q.w.WriteHeader(status)
	enc := json.NewEncoder(q.w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // who has gone away needs no answer
	return nil
}

// fail writes a problem. What was to change something is logged too.
func (q *request) fail(p *Problem) {
	if q.command != nil && p.OperationID == "" {
		p.OperationID = q.command.ID
	}
	if q.r.Method == http.MethodPost {
		q.log(slog.LevelWarn, "a change of a sale was refused", slog.Int("status", p.Status), slog.String("code", p.Code), slog.String("why", p.Error()))
	}
	p.Write(q.w)
}

// log writes the line that tells who has wanted what.
func (q *request) log(level slog.Level, text string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("by", q.actor.Name), slog.String("role", q.actor.Role.String()), slog.String("path", shorten(q.r.URL.Path)))
	if q.command != nil {
		attrs = append(attrs, slog.String("operation", q.command.ID), slog.String("reason", q.command.Reason))
	}
	q.cfg.Logger.LogAttrs(q.r.Context(), level, text, attrs...)
}

// shorten bounds what clients have written where it is shown.
func shorten(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
