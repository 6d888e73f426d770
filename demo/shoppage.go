package demo

import (
	_ "embed"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

//go:embed shoppage.html
var shopHTML string

// frontPage is the shop as a person sees it who looks in with a browser: they can sign in, buy, and pay, among the crowd.
type frontPage struct {
	shop *Shop
	page *template.Template
	json http.Handler // for everybody else
}

func newFrontPage(shop *Shop, json http.Handler) *frontPage {
	return &frontPage{shop: shop, page: template.Must(template.New("shop").Parse(shopHTML)), json: json}
}

// frontView is what the page shows.
type frontView struct {
	Lang, Other, OtherName string
	Chinese                bool
	Title, Price, Guest    string
	Sale, SKU              string
	Stock                  int
	Opens                  string
	PayWithin              int // seconds
}

// ServeHTTP implements [http.Handler].
func (p *frontPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept, Accept-Language, Cookie")
	if !prefersHTML(r.Header) {
		p.json.ServeHTTP(w, r)
		return
	}
	lang := r.URL.Query().Get("lang")
	if lang != "en" && lang != httpverdict.Chinese {
		lang = httpverdict.Language(r.Header)
	}
	view := frontView{
		Lang: lang, Chinese: lang == httpverdict.Chinese, Other: httpverdict.Chinese, OtherName: "中文",
		Title: skuTitle, Price: "¥" + flashsale.FormatDecimal(price, currency), Sale: p.shop.offer.sale, SKU: skuID, Stock: p.shop.offer.stock,
		Opens: p.shop.opens.Format(time.TimeOnly), PayWithin: int(p.shop.offer.hold.Seconds()),
		Guest: strings.TrimPrefix(guestOf(r.Header.Get(userHeader)), guestAccount),
	}
	if view.Chinese {
		view.Other, view.OtherName, view.Title = "en", "English", skuTitleChinese
	}
	h := w.Header()
	h.Set(shopHeader, "1")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", lang)
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	_ = p.page.Execute(w, &view) // a client that has gone away needs no page
}

// guestOf returns a user if they are a guest, else "".
func guestOf(user string) string {
	if strings.HasPrefix(user, guestAccount) {
		return user
	}
	return ""
}

// prefersHTML tells a browser from a program.
func prefersHTML(h http.Header) bool {
	accept := strings.Join(h.Values("Accept"), ",")
	html, json := strings.Index(accept, "text/html"), strings.Index(accept, "application/json")
	return html >= 0 && (json < 0 || html < json)
}

// ownForm takes a form of the shop's own pages alone: that of another site would sign somebody in, or out, without their knowing.
func ownForm(next http.HandlerFunc) http.HandlerFunc {
	cross := http.NewCrossOriginProtection()
	return func(w http.ResponseWriter, r *http.Request) {
		if err := httpverdict.CheckOrigin(cross, r); err != nil {
			w.Header().Set(shopHeader, "1")
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next(w, r)
	}
}

// signIn makes a guest of a person, who may buy at once: nobody has a phone here that a code could be sent to.
func (s *Shop) signIn(w http.ResponseWriter, r *http.Request) {
	cookie, user, ok := s.sessions.begin()
	if !ok {
		http.Error(w, "there are too many guests here", http.StatusServiceUnavailable)
		return
	}
	s.mu.Lock()
	s.logins[user] = proven
	s.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.SetCookie(w, &http.Cookie{Name: deviceCookie, Value: user, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	home(w, r)
}

// signOut makes a stranger of a guest.
func (s *Shop) signOut(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(sessionCookie); err == nil {
		s.sessions.end(c.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	home(w, r)
}

// home leads back to the front page, in the language that it was in.
func home(w http.ResponseWriter, r *http.Request) {
	to := "/"
	if lang := r.URL.Query().Get("lang"); lang == "en" || lang == httpverdict.Chinese {
		to += "?lang=" + lang
	}
	w.Header().Set(shopHeader, "1")
	http.Redirect(w, r, to, http.StatusSeeOther)
}
