package chaos

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

// guest is a request of the crowd as the referee sees it: what it sent, not what the gateway made of it.
type guest struct {
	method, path                 string
	address, user, device, phone string
}

func guestOf(r *httpverdict.Request) guest {
	g := guest{method: r.Method, path: r.Path, address: r.Header.Get("X-Forwarded-For"), user: r.Header.Get("X-User-Id")}
	if g.address == "" {
		g.address = r.Peer.String()
	}
	if cookies, err := http.ParseCookie(r.Header.Get("Cookie")); err == nil {
		for _, c := range cookies {
			if c.Name == "did" {
				g.device = c.Value
			}
		}
	}
	if query, err := url.ParseQuery(r.RawQuery); err == nil {
		g.phone = query.Get("phone")
	}
	return g
}

// clause is one rule of the shop's policy in the referee's own words: whom it is for, and by what they are counted.
type clause struct {
	rule   string
	method string // "" for any
	// paths are templates, in which {NAME} is any one segment; none for any path.
	paths []string
	// key is how the policy writes what by says.
	key     []string
	missing string
	by      func(guest) (key string, applies bool)
	limits  []headgate.Limit // of the policy
}

// clauses are the rules of the sample shop that deny. A rulebook does not come about if the policy says other things.
func clauses() []clause {
	everybody := func(guest) (string, bool) { return "", true }
	address := func(g guest) (string, bool) { return g.address, true }
	device := func(g guest) (string, bool) { return g.device, g.device != "" }
	anyDevice := func(g guest) (string, bool) { return g.device, true }
	phone := func(g guest) (string, bool) { return g.phone, true }
	user := func(g guest) (string, bool) {
		if g.user != "" {
			return "user " + g.user, true
		}
		return "address " + g.address, true
	}
	const sku = "/_headgate/sales/{sale}/skus/{sku}"
	buying, held := []string{sku + "/token", sku + "/reservations"}, sku+"/reservations/{rid}"
	return []clause{
		{rule: "site", missing: "shared", by: everybody},
		{rule: "browse", method: "GET", key: []string{"ip"}, missing: "shared", by: address},
		{rule: "login", method: "POST", paths: []string{"/login"}, key: []string{"ip"}, missing: "shared", by: address},
		{rule: "login-device", method: "POST", paths: []string{"/login"}, key: []string{"device"}, missing: "skip", by: device},
		{rule: "guest-ip", method: "POST", paths: []string{"/guest"}, key: []string{"ip"}, missing: "shared", by: address},
		{rule: "guest-device", method: "POST", paths: []string{"/guest"}, key: []string{"device"}, missing: "skip", by: device},
		{rule: "sms-phone", method: "POST", paths: []string{"/sms"}, key: []string{"phone"}, missing: "shared", by: phone},
		{rule: "sms-ip", method: "POST", paths: []string{"/sms"}, key: []string{"ip"}, missing: "shared", by: address},
		{rule: "sms-device", method: "POST", paths: []string{"/sms"}, key: []string{"device"}, missing: "shared", by: anyDevice},
		{rule: "code-user", method: "POST", paths: []string{"/confirm"}, key: []string{"user | ip"}, missing: "shared", by: user},
		{rule: "buy-user", method: "POST", paths: buying, key: []string{"user | ip"}, missing: "shared", by: user},
		{rule: "buy-device", method: "POST", paths: buying, key: []string{"device"}, missing: "skip", by: device},
		{rule: "buy-ip", method: "POST", paths: buying, key: []string{"ip"}, missing: "shared", by: address},
		{rule: "pay-user", method: "POST", paths: []string{held + "/pay", held + "/cancel"}, key: []string{"user | ip"}, missing: "shared", by: user},
	}
}

// rulebook is what the referee goes by.
type rulebook []clause

// newRulebook takes the limits, and nothing else, from the policy, and fails unless its rules are those of the clauses.
func newRulebook(p *policy.Policy) (rulebook, error) {
	book := rulebook(clauses())
	found := 0
	for _, r := range p.Rules() {
		if r.Mode != policy.Enforce {
			continue
		}
		i := slices.IndexFunc(book, func(c clause) bool { return c.rule == r.Name })
		if i < 0 || !book[i].says(&r) {
			return nil, fmt.Errorf("chaos: the referee does not know the rule %q of the policy %s as it stands there", r.Name, p.Name())
		}
		book[i].limits = r.Limits
		found++
	}
	if found != len(book) {
		return nil, fmt.Errorf("chaos: the policy %s has %d of the %d rules that the referee knows", p.Name(), found, len(book))
	}
	return book, nil
}

// says tells whether a rule of the policy is the clause. What changes limits, costs or who is counted is in none of them.
func (c *clause) says(r *policy.Rule) bool {
	same := slices.Equal(r.Methods, words(c.method)) && slices.Equal(r.Paths, c.paths) && slices.Equal(r.Key, c.key) && r.Missing == c.missing
	plain := len(r.Hosts)+len(r.Headers)+len(r.Skip)+len(r.Overrides)+len(r.Schedule) == 0 && r.WarmupOver == 0 &&
		r.When == "" && r.Cost == "" && r.CountWhen == "" && !r.IgnoreCase && r.Store == policy.Strict && r.OnError == policy.OnErrorLocal
	return same && plain
}

func words(one string) []string {
	if one == "" {
		return nil
	}
	return []string{one}
}

// applies tells whether, and by which key, a request counts under the clause.
func (c *clause) applies(g guest) (key string, ok bool) {
	fits := func(template string) bool { return isLike(template, strings.TrimSuffix(g.path, "/")) }
	if c.method != "" && c.method != g.method || c.paths != nil && !slices.ContainsFunc(c.paths, fits) {
		return "", false
	}
	return c.by(g)
}

// isLike tells whether a path is one of a template's.
func isLike(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	for i, segment := range want {
		if i >= len(got) || segment != got[i] && !strings.HasPrefix(segment, "{") {
			return false
		}
	}
	return len(want) == len(got)
}
