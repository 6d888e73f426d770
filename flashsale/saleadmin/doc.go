// Package saleadmin is the HTTP API by which operators look after flash sales, and a client of it in Go. It belongs on a listener of its
// own, that shoppers cannot reach; who asks, and in which role, is for the caller to make sure.
package saleadmin
