// Package paywire is what a sale and a payment service say to each other, whoever speaks: signatures, the payment as JSON, and the
// message that tells of a change. docs/payments.md is its description for services in other languages.
package paywire
