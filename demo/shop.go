package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Headers between the crowd, the gateway and the shop.
const (
	userHeader   = "X-User-Id"     // who is logged in; set by the load balancer that the crowd stands for
	flightHeader = "X-Demo-Flight" // which request of the crowd this is
	shopHeader   = "X-Shop"        // on every answer of the shop, so that no other answer is taken for one
	deviceCookie = "did"
)

// maxCodes bounds the SMS codes that the shop remembers.
const maxCodes = 100_000

// slowness is how long the shop works on a request: a lognormal time, and now and then a Pareto one, as when a disk or a
// payment provider hesitates.
type slowness struct {
	median, tail time.Duration
	hiccup       float64 // the share that draws from the tail
}

// slowest is the longest that the shop works on one request.
const slowest = 800 * time.Millisecond

// Shop is the upstream: a product page, login and SMS codes. It sells nothing itself: the sale beside the gateway does, to those whom
// the shop has let in.
type Shop struct {
	opens time.Time
	// stock says in a word what is left.
	stock    func(context.Context) string
	offer    offer
	sessions sessions
	flights  *flights
	seed     uint64
	served   atomic.Uint64
	texts    [kinds]atomic.Int64 // SMS sent, by who asked

	mu     sync.Mutex
	logins map[string]standing
	inbox  map[string]string // phone → code
}

// offer is what the shop's page says of the sale.
type offer struct {
	sale  string
	stock int
	hold  time.Duration
}

// standing is how far somebody has come with signing in.
type standing uint8

const (
	stranger standing = iota
	loggedIn          // with a password
	proven            // with a phone as well: may buy
)

// newShop returns a shop. When its sale opens, and what is on offer, is for the caller to say.
func newShop(stock func(context.Context) string, seed uint64, fl *flights) *Shop {
	return &Shop{
		stock: stock, flights: fl, seed: seed,
		logins: make(map[string]standing), inbox: make(map[string]string),
	}
}

// Handler returns the shop's pages.
func (s *Shop) Handler() http.Handler {
	page := slowness{median: 4 * time.Millisecond, tail: 40 * time.Millisecond, hiccup: 0.01}
	form := slowness{median: 8 * time.Millisecond, tail: 60 * time.Millisecond, hiccup: 0.02}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", newFrontPage(s, s.worked(page, s.product)))
	mux.Handle("POST /guest", ownForm(s.signIn))
	mux.Handle("POST /leave", ownForm(s.signOut))
	mux.Handle("GET /product", s.worked(page, s.product))
	mux.Handle("POST /login", s.worked(form, s.login))
	mux.Handle("POST /sms", s.worked(form, s.sms))
	mux.Handle("POST /confirm", s.worked(form, s.confirm))
	return mux
}

// worked wraps a page into the time that it takes, and reports that time to whom it may concern.
func (s *Shop) worked(slow slowness, page func(r *http.Request) (int, any)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		c := newChance(s.seed, s.served.Add(1)|1<<63)
		work := c.lognormal(slow.median, 0.5, slowest)
		if c.happens(slow.hiccup) {
			work = c.pareto(slow.tail, 1.3, slowest)
		}
		if !pause(r.Context(), work) {
			return
		}
		status, body := page(r)
		w.Header().Set(shopHeader, "1")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // a client that has gone away needs no answer
		s.flights.worked(r.Header.Get(flightHeader), time.Since(start))
	})
}

type productPage struct {
	Name  string `json:"name"`
	Opens string `json:"opens"`
	Stock string `json:"stock"`
}

type message struct {
	Message string `json:"message"`
}

func (s *Shop) product(r *http.Request) (int, any) {
	return http.StatusOK, productPage{Name: skuTitle, Opens: s.opens.Format(time.RFC3339), Stock: s.stock(r.Context())}
}

type credentials struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

func (s *Shop) login(r *http.Request) (int, any) {
	var c credentials
	if err := decode(r, &c); err != nil {
		return http.StatusBadRequest, message{"the login is not readable"}
	}
	if c.User == "" || len(c.User) > 64 || c.Password != passwordOf(c.User) {
		return http.StatusUnauthorized, message{"wrong name or password"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.logins) >= maxCodes {
		return http.StatusServiceUnavailable, message{"too many are logged in"}
	}
	s.logins[c.User] = max(s.logins[c.User], loggedIn)
	return http.StatusOK, message{"welcome, " + c.User}
}

func (s *Shop) sms(r *http.Request) (int, any) {
	phone := r.URL.Query().Get("phone")
	if phone == "" || len(phone) > 20 {
		return http.StatusBadRequest, message{"no such phone"}
	}
	n := s.texts[kindOfUser(r.Header.Get(userHeader))].Add(1)
	code := strconv.FormatUint(100_000+newChance(s.seed, uint64(n)).r.Uint64N(900_000), 10)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.inbox[phone]; !ok && len(s.inbox) >= maxCodes {
		return http.StatusServiceUnavailable, message{"too many codes are under way"}
	}
	s.inbox[phone] = code
	return http.StatusOK, message{"a code is on its way"}
}

type proof struct {
	Phone string `json:"phone"`
	Code  string `json:"code"`
}

// confirm takes the code out of a text message: whoever has it may buy.
func (s *Shop) confirm(r *http.Request) (int, any) {
	user := r.Header.Get(userHeader)
	var p proof
	if err := decode(r, &p); err != nil {
		return http.StatusBadRequest, message{"the code is not readable"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	code := s.inbox[p.Phone]
	switch {
	case s.logins[user] < loggedIn:
		return http.StatusUnauthorized, message{"log in first"}
	case code == "" || code != p.Code:
		return http.StatusForbidden, message{"wrong code"}
	}
	s.logins[user] = proven
	return http.StatusOK, message{"you can buy now"}
}

// mayBuy tells whether the shop knows who a user is.
func (s *Shop) mayBuy(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins[user] == proven
}

// readSMS is the buyer's look at their phone.
func (s *Shop) readSMS(phone string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inbox[phone]
}

// textsSent returns how many SMS a kind of visitor has caused.
func (s *Shop) textsSent(k Kind) int64 { return s.texts[k].Load() }

func decode(r *http.Request, into any) error {
	return json.NewDecoder(http.MaxBytesReader(nil, r.Body, 4<<10)).Decode(into)
}

// passwordOf is the one password that opens an account.
func passwordOf(user string) string { return "secret-of-" + user }

// kindOfUser tells shoppers' accounts from bots'.
func kindOfUser(user string) Kind {
	if strings.HasPrefix(user, botAccount) {
		return Bot
	}
	return Shopper
}
