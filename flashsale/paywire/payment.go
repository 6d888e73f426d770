package paywire

import (
	"encoding/json"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// MaxWebhook is the longest body of a webhook, in bytes.
const MaxWebhook = 64 << 10

// Payment is a payment in JSON. ChangedAt is RFC 3339.
type Payment struct {
	Intent    string    `json:"intent"`
	Status    string    `json:"status"`
	Amount    int64     `json:"amount"`
	Currency  string    `json:"currency"`
	URL       string    `json:"url"`
	ChangedAt time.Time `json:"changed_at"`
}

// PaymentOf writes a payment.
func PaymentOf(p *flashsale.ProviderPayment) Payment {
	return Payment{
		Intent: p.IntentKey, Status: string(p.Status), Amount: p.Amount, Currency: p.Currency, URL: p.URL, ChangedAt: p.ChangedAt.UTC(),
	}
}

// Provider reads a payment.
func (p *Payment) Provider() flashsale.ProviderPayment {
	return flashsale.ProviderPayment{
		IntentKey: p.Intent, Status: flashsale.PayStatus(p.Status), Amount: p.Amount, Currency: p.Currency, URL: p.URL, ChangedAt: p.ChangedAt,
	}
}

// message is the body of a webhook.
type message struct {
	ID   string  `json:"id"`
	Type string  `json:"type"`
	Data Payment `json:"data"`
}

// Message writes the body of the webhook that tells of a payment.
func Message(id string, p *flashsale.ProviderPayment) []byte {
	body, _ := json.Marshal(&message{ID: id, Type: "payment." + string(p.Status), Data: PaymentOf(p)}) // strings, numbers and a time of this era always can be
	return body
}

// ReadMessage checks a webhook and reads it: CodeInvalidSignature, or CodeInvalidArgument if it is signed and says nothing.
func ReadMessage(v *Verifier, header map[string][]string, body []byte) (*flashsale.ProviderEvent, error) {
	if len(body) > MaxWebhook {
		return nil, refused("webhook refused: its body is too long")
	}
	if err := v.Verify(header, body); err != nil {
		return nil, err
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "the webhook is signed, and its body cannot be read", Err: err}
	}
	return &flashsale.ProviderEvent{ID: m.ID, Payment: m.Data.Provider()}, nil
}
