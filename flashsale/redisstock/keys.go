package redisstock

import (
	"strconv"

	"github.com/headgate-io/headgate/flashsale"
)

// The names of an epoch's keys, in the order in which lua/head.lua has them, from its second on.
var epochKeys = [...]string{"stock", "res", "user", "due", "q", "marks", "pulls", "dead", "deadat", "ops"}

// How many keys of that order scripts are given.
const (
	forReserve = 7
	forAll     = len(epochKeys) + 2
)

// keysOf returns the keys of an epoch of a sku:
//
//	headgate:{sale:sku}:epoch
//	headgate:{sale:sku}:7:stock
//
// Ids have neither braces nor colons, so no two can be the same.
func (s *Stock) keysOf(key flashsale.Key, epoch int64, n int) []string {
	tag := s.cfg.Namespace + ":{" + key.Sale + ":" + key.SKU + "}:"
	keys := make([]string, 1, forAll)
	keys[0] = tag + "epoch"
	of := tag + strconv.FormatInt(epoch, 10) + ":"
	for _, name := range epochKeys[:min(n-1, len(epochKeys))] {
		keys = append(keys, of+name)
	}
	if n == forAll {
		keys = append(keys, tag+"epochs")
	}
	return keys
}
