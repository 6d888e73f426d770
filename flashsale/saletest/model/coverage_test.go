package model

import "testing"

// mustHappen are the beginnings of what is counted, each of which CI must see happen: every transition, every operation, every kind of
// fault on every kind of port.
func mustHappen() []string {
	return []string{
		"T0", "T1", "T1'", "T2", "T3", "T3b", "T4", "T5", "T5 by_owner", "T5 drawn", "T6", "T7", "T8", "T9", "T9 paid_twice", "T9 amount_mismatch",
		"T9 currency_mismatch", "T9 sold_out", "T9 purchase_limit", "T1' sold_out", "T1' purchase_limit",
		"operation open done", "operation pause done", "operation resume done", "operation rate done", "operation drain done",
		"operation close done", "operation top_up done", "operation withdraw done", "operation withdraw refused", "operation rebuild done",
		"fault fails stock", "fault fails orders", "fault fails payments", "fault fails relay",
		"fault is lost stock", "fault is lost orders", "fault is lost payments", "fault is lost relay",
		"fault runs twice stock", "fault runs twice orders", "fault runs twice payments", "fault runs twice relay",
		"fault crashes before stock", "fault crashes before orders", "fault crashes before payments",
		"fault crashes after stock", "fault crashes after orders", "fault crashes after payments",
		"crash in a rebuild", "fault loss", "fault loss of all", "fault loss while rebuilding", "fault late write", "fault skew", "fault sleep", "fault slow",
		"fault outage", "fault a day passes", "end watch fenced",
		"late rebuilder stock.Point", "late rebuilder stock.Drain", "late rebuilder stock.Load", "late rebuilder stock.Drop",
		"late rebuilder orders.Snapshot", "late rebuilder orders.EndRebuild",
		"webhook once more", "webhook out of order", "capture of void", "capture of failed",
		"reserve known", "reserve conflict", "reserve sold_out", "reserve purchase_limit", "reserve busy", "reserve token_expired", "reserve rebuilding",
		"reserve not_open", "end webhook amount_mismatch", "end webhook currency_mismatch", "end webhook invalid_signature",
	}
}

// everythingHappened fails if something of what can happen never has: then nothing is known of it.
func everythingHappened(t *testing.T, sum *tally) {
	t.Helper()
	for _, what := range mustHappen() {
		if sum.get(what) == 0 {
			t.Errorf("in all these runs this never happened: %s", what)
		}
	}
}
