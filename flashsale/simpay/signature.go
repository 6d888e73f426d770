package simpay

import (
	"time"

	"github.com/headgate-io/headgate/flashsale/paywire"
)

// SignatureHeader is the header of a webhook that has its signature; see [paywire].
const SignatureHeader = paywire.WebhookHeader

// Sign returns the value of [SignatureHeader] for a body sent at a time.
func Sign(secrets [][]byte, at time.Time, body []byte) string {
	return paywire.SignWebhook(secrets, at, body)
}
