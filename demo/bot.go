package demo

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	botAccounts    = 2000 // bought by the hundred
	botsPerDevice  = 10
	simsPerDevice  = 5
	botAddresses   = 1 << 16 // rented by the hour: a new one for every request
	leakedPassword = 0.3     // the share of the stolen passwords that are right
	botGap         = 200 * time.Millisecond
	stubbornness   = 3 // how often a bot repeats a step that was denied, at once
)

// farm is what the bots have in common: few devices, few SIM cards, and the accounts that they got into.
type farm struct {
	devices int

	mu    sync.Mutex
	loot  []string // accounts that are logged in
	owned map[string]bool
}

func newFarm(bots int) *farm {
	return &farm{devices: max(1, bots/botsPerDevice), owned: make(map[string]bool)}
}

func (f *farm) capture(account string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.owned[account] {
		f.owned[account] = true
		f.loot = append(f.loot, account) // at most botAccounts
	}
}

// account returns one that is logged in; as long as there is none, any.
func (f *farm) account(c chance) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.loot) == 0 {
		return stolenAccount(c)
	}
	return f.loot[c.r.IntN(len(f.loot))]
}

func stolenAccount(c chance) string { return fmt.Sprintf("%s%d", botAccount, c.r.IntN(botAccounts)) }

// bot is one worker of the farm. It takes another address for every request, and has no patience.
type bot struct {
	client *client
	sale   saleCalls
	shop   *Shop
	farm   *farm
	dice   chance
}

func newBot(n int, w *world) *bot {
	return &bot{client: w.client, sale: w.sale, shop: w.shop, farm: w.farm, dice: newChance(w.seed, uint64(n)|1<<32)}
}

// run repeats the script: log in with a stolen password, have a code sent, buy.
func (b *bot) run(ctx context.Context) {
	for b.round(ctx) {
	}
}

func (b *bot) round(ctx context.Context) bool {
	device := b.dice.r.IntN(b.farm.devices)
	me := call{kind: Bot, method: http.MethodPost, device: fmt.Sprintf("farm-%d", device)}
	victim, password := stolenAccount(b.dice), "guess"
	if b.dice.happens(leakedPassword) {
		password = passwordOf(victim)
	}
	r, ok := b.hammer(ctx, me, "/login", credentials{User: victim, Password: password})
	if r.status == http.StatusOK {
		b.farm.capture(victim)
	}
	me.user = b.farm.account(b.dice)
	phone := fmt.Sprintf("%d", 17_000_000_000+device*simsPerDevice+b.dice.r.IntN(simsPerDevice))
	if ok {
		_, ok = b.hammer(ctx, me, "/sms?phone="+phone, nil)
	}
	if ok {
		_, ok = b.hammer(ctx, me, "/confirm", proof{Phone: phone, Code: b.shop.readSMS(phone)})
	}
	return ok && b.buy(ctx, me)
}

// Of what a bot has reserved it pays for the most, at once; the rest it keeps from others.
const (
	botPays  = 0.8
	botPolls = 20
)

// buy asks for a token and spends it, twice to be sure, and pays.
func (b *bot) buy(ctx context.Context, me call) bool {
	r, ok := b.press(ctx, b.sale.token(me))
	token := b.sale.read(me, r).Token
	if !ok || token == "" {
		return ok
	}
	r, ok = b.press(ctx, b.sale.reserve(me, token))
	got := b.sale.read(me, r)
	for range botPolls {
		if !ok || got.RID == "" || got.decided() {
			break
		}
		r, ok = b.press(ctx, b.sale.look(me, got.RID))
		if next := b.sale.read(me, r); next.RID != "" {
			got = next
		}
	}
	if !ok || !got.is(flashsale.Reserved) || !b.dice.happens(botPays) {
		return ok
	}
	r, ok = b.press(ctx, b.sale.pay(me, got.RID))
	if bill := b.sale.read(me, r); ok && bill.URL != "" {
		_, ok = b.press(ctx, b.sale.atBank(me, bill.URL, flashsale.PayCaptured))
	}
	return ok
}

// hammer sends a step until it is served, a few times, each from another address. It reports false when it is over.
func (b *bot) hammer(ctx context.Context, q call, path string, body any) (r reply, ok bool) {
	q.path = path
	if body != nil {
		q.body = asJSON(body)
	}
	return b.press(ctx, q)
}

func (b *bot) press(ctx context.Context, q call) (r reply, ok bool) {
	for range stubbornness {
		if !pause(ctx, b.dice.exponential(botGap, 20*botGap)) {
			return r, false
		}
		q.address = addressIn(botNet, b.dice.r.IntN(botAddresses))
		if r = b.client.send(q); r.fate == served {
			break
		}
	}
	return r, true
}
