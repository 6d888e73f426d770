// Package page is a script for the pages of a shop, with which people buy in a flash sale. It has no dependencies and is less than 6 kB long.
//
//	<div data-headgate-sale="autumn" data-sku="teapot"></div>
//	<script src="/_headgate/sales/~/page.js" defer></script>
//
// It fills the element with a line that says how things are, and with a button or two. It counts down by the server's clock; sends one request at
// a time, however often somebody clicks; keeps the order token, which is the key of the purchase, in the browser's storage, so that a reload, a
// second tab or a lost answer never makes a second order; heeds Retry-After, with jitter of its own; and follows the reservation by server-sent
// events or, where these do not come through, by polling.
//
// What can be set on the element
//
//	data-quantity   how many, by default 1
//	data-lang       en or zh, by default that of the page, else that of the browser
//	data-base       the origin of the sale, such as https://sale.example.com, if it is not that of the page
//
// The element's data-state says how things are, for style sheets: loading, soon, open, asking, retrying, pending, reserved, confirming, confirmed,
// rejected, cancelled, expired, unknown, all_held, gone, paused, ended, missing, signin or failed. Whenever it changes, an event "headgate"
// bubbles from the element, with {state, result} as its detail. Before the page of the payment provider is opened comes "headgate-pay", with {url, result}: who
// prevents its default opens the page in another way.
//
// Headgate.mount(element) does the same for an element that comes later. Headgate.words has all texts, as [English, Chinese] under each
// state: a shop can write its own before the elements are mounted.
package page

import _ "embed"

//go:generate go tool -modfile=../../../tools/go.mod esbuild --minify --charset=utf8 --target=es2020 --outfile=page.min.js --allow-overwrite page.js

//go:embed page.min.js
var script string

// Script returns the script as it is served: text/javascript in UTF-8.
func Script() string { return script }
