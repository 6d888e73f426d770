package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	botAccounts    = 2000 // bought by the hundred
	botsPerDevice  = 10
	simsPerDevice  = 5
	botAddresses   = 1 << 16 // rented by the hour: a new one for every request
	leakedPassword = 0.3     // the share of the stolen passwords that are right
	botGap         = 30 * time.Millisecond
	stubbornness   = 3 // how often a bot repeats a step that was denied, at once
)

// bot is one worker of the farm. It has a few devices and SIM cards in common with the others, an address for every
// request, and no patience.
type bot struct {
	client  *client
	shop    *Shop
	dice    chance
	devices int
}

func newBot(n int, w *world) *bot {
	return &bot{
		client: w.client, shop: w.shop, dice: newChance(w.seed, uint64(n)|1<<32),
		devices: max(1, w.bots/botsPerDevice),
	}
}

// run repeats the script: log in with a stolen password, have a code sent, buy.
func (b *bot) run(ctx context.Context) {
	for {
		account := fmt.Sprintf("%s%d", botAccount, b.dice.r.IntN(botAccounts))
		device := b.dice.r.IntN(b.devices)
		phone := fmt.Sprintf("%d", 17_000_000_000+device*simsPerDevice+b.dice.r.IntN(simsPerDevice))
		me := call{kind: Bot, method: http.MethodPost, device: fmt.Sprintf("farm-%d", device), user: account}

		password := "guess"
		if b.dice.happens(leakedPassword) {
			password = passwordOf(account)
		}
		ok := b.hammer(ctx, me, "/login", credentials{User: account, Password: password}) &&
			b.hammer(ctx, me, "/sms?phone="+phone, nil) &&
			b.hammer(ctx, me, "/buy", order{Phone: phone, Code: b.shop.readSMS(phone)})
		if !ok {
			return
		}
	}
}

// hammer sends a step until it is served, a few times, each from another address. It reports false when it is over.
func (b *bot) hammer(ctx context.Context, q call, path string, body any) bool {
	q.path = path
	if body != nil {
		q.body = asJSON(body)
	}
	for range stubbornness {
		if !pause(ctx, b.dice.exponential(botGap, 20*botGap)) {
			return false
		}
		q.address = addressIn(botNet, b.dice.r.IntN(botAddresses))
		if b.client.send(q).fate == served {
			break
		}
	}
	return true
}
