// Package httppay takes money through a payment service of the merchant's own, by a small protocol of HTTP and JSON that a service in any
// language can speak: docs/payments.md describes it, and [OpenAPI] is its document. [Client] is the sale's side, a [flashsale.Payments];
// [Handler] is the other side, for services in Go, on whatever is a [flashsale.Payments] there.
//
// Requests are signed over their time, method, path and body, webhooks over their time and body, by secrets that both sides have. Every call
// is named by the key of its intent, so that all of them can be repeated: what one of them has done, its repetition tells.
package httppay
