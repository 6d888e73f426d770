package demo

import (
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

// Shop is the upstream: a product page, login, SMS codes, and a sale that opens at a set time.
type Shop struct {
	opens   time.Time
	stock   *Stock
	flights *flights
	seed    uint64
	served  atomic.Uint64
	texts   [kinds]atomic.Int64 // SMS sent, by who asked

	mu     sync.Mutex
	logins map[string]bool
	inbox  map[string]string // phone → code
}

// NewShop returns a shop whose sale opens at a time.
func newShop(opens time.Time, stock *Stock, seed uint64, fl *flights) *Shop {
	return &Shop{
		opens: opens, stock: stock, flights: fl, seed: seed,
		logins: make(map[string]bool), inbox: make(map[string]string),
	}
}

// Handler returns the shop's pages.
func (s *Shop) Handler() http.Handler {
	page := slowness{median: 4 * time.Millisecond, tail: 40 * time.Millisecond, hiccup: 0.01}
	form := slowness{median: 8 * time.Millisecond, tail: 60 * time.Millisecond, hiccup: 0.02}
	till := slowness{median: 20 * time.Millisecond, tail: 120 * time.Millisecond, hiccup: 0.04}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", s.worked(page, s.product))
	mux.Handle("GET /product", s.worked(page, s.product))
	mux.Handle("POST /login", s.worked(form, s.login))
	mux.Handle("POST /sms", s.worked(form, s.sms))
	mux.Handle("POST /buy", s.worked(till, s.buy))
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
	Left  int    `json:"left"`
}

type message struct {
	Message string `json:"message"`
}

func (s *Shop) product(*http.Request) (int, any) {
	return http.StatusOK, productPage{Name: "River stone teapot", Opens: s.opens.Format(time.RFC3339), Left: s.stock.Left()}
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
	s.logins[c.User] = true
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

type order struct {
	Phone string `json:"phone"`
	Code  string `json:"code"`
}

func (s *Shop) buy(r *http.Request) (int, any) {
	user := r.Header.Get(userHeader)
	var o order
	if err := decode(r, &o); err != nil {
		return http.StatusBadRequest, message{"the order is not readable"}
	}
	s.mu.Lock()
	known, code := s.logins[user], s.inbox[o.Phone]
	s.mu.Unlock()
	switch {
	case !known:
		return http.StatusUnauthorized, message{"log in first"}
	case time.Now().Before(s.opens):
		return http.StatusConflict, message{"the sale has not opened"}
	case code == "" || code != o.Code:
		return http.StatusForbidden, message{"wrong code"}
	}
	if s.stock.Buy(user) == SoldOut {
		return http.StatusGone, message{"sold out"}
	}
	return http.StatusOK, message{"it is yours"}
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
