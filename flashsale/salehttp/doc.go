// Package salehttp is a flash sale over HTTP, as shoppers see it: everything under [Prefix]. What there is, what it takes and what it answers
// is in the OpenAPI document that it serves (openapi.json), and in docs/sale-http.md in words.
//
// A [Handler] knows a sale through [Sales], which *engine.Engine is, and shoppers through [Identity], which its caller fills: it trusts
// nothing else that a request says of who sends it. Limits are for what stands before it. Whatever fails is answered with a problem document
// (RFC 9457) in English or Chinese; an order token never comes into an address, a log or an answer but the one that issues it.
package salehttp
