package stocktest

import (
	"fmt"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

func hostileTests() []test {
	return []test{
		{"users of any bytes", anyUser},
		{"rids of every allowed kind", anyRID},
		{"skus that look like each other", lookalikes},
		{"large numbers", largeNumbers},
	}
}

// users are such as a store could mistake for another, for a number or for something of its own.
func users() []string {
	return []string{
		"a", "A", "a ", " a", "a\x00", "\x00", "\x00a", "a\n", "a\r\n", "a\t", "á", "a\u0301", "\xff\xfe\xfd", "\xc3\x28", "{a}", "{}", "a:b", "a:b:c", ":", "::",
		"a,b", ",", "a|b", "|", "\x1f", "\x1e", "0", "00", "-1", "1e3", "nil", "null", "false", "true", "r1", "u", "*", "?", "[a]", "%s", "%00", "'", "\"", "\\", "\\0",
		"$1", "{\"user\":1}", "__proto__", "9007199254740993", "9007199254740992", " ", strings.Repeat("x", flashsale.MaxUser), strings.Repeat("x", flashsale.MaxUser-1),
		strings.Repeat("\x00", flashsale.MaxUser), strings.Repeat("\xff", flashsale.MaxUser), strings.Repeat("é", flashsale.MaxUser/2),
	}
}

func anyUser(d *desk) {
	d.settings.PurchaseLimit = 1
	d.settings.Rate = flashsale.MaxRate
	d.sell(1000)
	all := users()
	for i, user := range all {
		rid := fmt.Sprint("r", i)
		d.accept(rid, user, 1)
		sameSet(d, "holds", d.refuse(d.ask("other", user, 1), flashsale.CodePurchaseLimit).Holds, rid)
	}
	n := int64(len(all))
	d.figures(1000-n, n, 0)
	for i, job := range d.pull("c\x00:1", len(all)) {
		equal(d, "the job's user", job.User, all[i])
	}
	for i, user := range all {
		rid := fmt.Sprint("r", i)
		equal(d, "the entry's user", d.find(rid).User, user)
		d.repeat(d.ask(rid, user, 1), flashsale.Pending, 0)
		d.apply(effect(rid, user, 1, flashsale.Cancelled, 2), flashsale.AppliedMoved)
		d.accept("again."+rid, user, 1)
	}
	d.epoch++
	d.point()
	for i, user := range all {
		rid := fmt.Sprint("loaded", i)
		d.load(flashsale.LoadPart{
			Entries: []flashsale.Entry{{RID: rid, User: user, Quantity: 1, State: flashsale.Reserved, Version: 1, At: start()}},
			Buyers:  []flashsale.Buyer{{User: user, Quantity: 1, RIDs: []string{rid}}},
		})
	}
	d.load(flashsale.LoadPart{Last: true, Total: n + 1, Reserved: n})
	d.settings.Version++
	d.configure()
	for i, user := range all {
		rid := fmt.Sprint("loaded", i)
		equal(d, "the entry's user", d.find(rid).User, user)
		sameSet(d, "holds", d.refuse(d.ask("other", user, 1), flashsale.CodePurchaseLimit).Holds, rid)
	}
	for i, job := range d.drain(1, 7) {
		equal(d, "the drained job's user", job.User, all[i%len(all)])
	}
}

func anyRID(d *desk) {
	d.settings.Rate = flashsale.MaxRate
	d.sell(1000)
	all := []string{
		"a", "A", "0", "-", "--", "_", ".", "..", "-1", "1e3", "0x10", "00", "re.x", strings.Repeat("Z", flashsale.MaxID), strings.Repeat("Z", flashsale.MaxID-1),
		"total", "avail", "epoch", "nil", "r.1", "r-1", "r_1", "R_1",
	}
	for i, rid := range all {
		d.accept(rid, fmt.Sprint("u", i), 1)
	}
	for i, rid := range all {
		d.repeat(d.ask(rid, fmt.Sprint("u", i), 1), flashsale.Pending, 0)
	}
	d.pulls("c1", 100, all...)
	for i, rid := range all {
		d.apply(effect(rid, fmt.Sprint("u", i), 1, flashsale.Confirmed, 2), flashsale.AppliedMoved)
	}
	d.figures(1000-int64(len(all)), 0, int64(len(all)))
}

func lookalikes(d *desk) {
	sale := newKey().Sale
	var desks []*desk
	for _, key := range []flashsale.Key{
		{Sale: sale, SKU: "a"}, {Sale: sale, SKU: "A"}, {Sale: sale, SKU: "a-b"}, {Sale: sale + "-a", SKU: "b"}, {Sale: sale + ".a", SKU: "b"}, {Sale: sale, SKU: "a.b"},
		{Sale: sale, SKU: "1"}, {Sale: sale, SKU: "a_1"}, {Sale: sale + "_a", SKU: "1"}, {Sale: sale, SKU: strings.Repeat("s", flashsale.MaxID)},
	} {
		other := d.on(key)
		other.sell(10)
		desks = append(desks, other)
	}
	for i, other := range desks {
		other.accept("r1", "u1", int64(i%5)+1)
	}
	for i, other := range desks {
		q := int64(i%5) + 1
		other.figures(10-q, q, 0)
		other.pulls("c1", 10, "r1")
	}
}

func largeNumbers(d *desk) {
	d.settings.PurchaseLimit = flashsale.MaxPurchaseLimit
	d.epoch = 1<<53 - 2
	d.sell(flashsale.MaxTotal)
	d.accept("r1", "u1", flashsale.MaxPurchaseLimit)
	d.refuse(d.ask("r2", "u1", 1), flashsale.CodePurchaseLimit)
	d.refuse(d.ask("r2", "u2", flashsale.MaxTotal), flashsale.CodePurchaseLimit)
	d.figures(flashsale.MaxTotal-flashsale.MaxPurchaseLimit, flashsale.MaxPurchaseLimit, 0)
	d.adjust("op-1", -(flashsale.MaxTotal - flashsale.MaxPurchaseLimit), true, 0)
	d.adjust("op-2", -1, false, 0)
	d.apply(effect("r1", "u1", flashsale.MaxPurchaseLimit, flashsale.Confirmed, 1<<53-2), flashsale.AppliedMoved)
	d.apply(effect("r1", "u1", flashsale.MaxPurchaseLimit, flashsale.Confirmed, 1<<53-3), flashsale.AppliedOld)
	d.figures(0, 0, flashsale.MaxPurchaseLimit)
	d.is("r1", flashsale.Confirmed, 1<<53-2)
	equal(d, "the job's quantity", d.pulls("c1", 1, "r1")[0].Quantity, flashsale.MaxPurchaseLimit)
}
