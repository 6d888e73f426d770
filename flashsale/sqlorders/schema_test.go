package sqlorders

import (
	"strings"
	"testing"
)

// aRow is a row of each table that the schema takes, after createSale. A test changes one column at a time.
var aRow = map[string]map[string]any{
	"buyer": {"sale": "sale", "sku": "sku", "user_id": []byte("u"), "quantity": 1, "most": 2},
	"reservation": {
		"rid": "r", "sale": "sale", "sku": "sku", "user_id": []byte("u"), "quantity": 1, "state": 2, "version": 1, "reason": "", "until_at": 1,
		"pay_granted": 0, "order_id": "o", "amount": 0, "currency": "CNY", "origin": "", "epoch": 1, "seq": 1, "created_at": 1, "changed_at": 1,
		"ended_at": nil,
	},
	"stock_ledger": {"id": "r", "phase": "settle", "sale": "sale", "sku": "sku", "quantity": 1, "kind": "sold", "at": 1},
	"operation": {
		"id": "op", "sale": "sale", "sku": "sku", "kind": "rate", "delta": 0, "status": "", "rate": 1, "reason": "why", "by_whom": "", "state": "begun",
		"epoch": 1, "detail": "", "created_at": 1, "changed_at": 1,
	},
	"orders": {
		"order_id": "o", "rid": "r", "sale": "sale", "sku": "sku", "user_id": []byte("u"), "quantity": 1, "amount": 0, "currency": "CNY",
		"state": "unpaid", "created_at": 1, "changed_at": 1,
	},
	"payment": {
		"intent_key": "r:1", "rid": "r", "attempt": 1, "amount": 1, "currency": "CNY", "state": "live", "live": 1, "applied_to": nil, "reason": "",
		"created_at": 1, "changed_at": 1,
	},
	"payment_event": {"event_id": "e", "intent_key": "r:1", "status": "void", "at": 1},
	"outbox": {
		"rid": "r", "version": 1, "sale": "sale", "sku": "sku", "user_id": []byte("u"), "quantity": 1, "state": 2, "reason": "", "order_id": "", "amount": 0,
		"currency": "CNY", "stock_sent": 0, "relay_sent": 0, "at": 1,
	},
	"inbox":    {"consumer": "c", "message_id": "r:1", "at": 1},
	"lease":    {"name": "l", "holder": "h", "fence": 1, "until_at": 1},
	"progress": {"name": "p", "at": 1},
	"dropped":  {"operation": "o", "sale": "s", "sku": "k", "epoch": 1, "settings_version": 1, "removed": 0, "reason": "r", "by_whom": "b", "at": 1},
}

type override map[string]any

func insertion(table string, with override) (string, []any) {
	var names []string
	var args []any
	for name, value := range aRow[table] {
		if v, changed := with[name]; changed {
			value = v
		}
		names, args = append(names, name), append(args, value)
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(names)-1) + ")", args
}

func TestSchemaTakesRows(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		for table := range aRow {
			query, args := insertion(table, nil)
			mustExec(t, o, query, args...)
			if table != "outbox" {
				rejects(t, o, query, args...) // every table has a key of its own
			}
		}
		for table, changes := range map[string][]override{
			"reservation":  {{"rid": "R"}, {"rid": "r2", "state": 4, "ended_at": 1}, {"rid": "r.3", "user_id": []byte{0}}},
			"stock_ledger": {{"phase": "reserve", "kind": ""}, {"id": "R"}},
			"payment":      {{"intent_key": "r:2", "attempt": 2, "live": nil, "state": "void"}, {"intent_key": "r:3", "attempt": 3, "live": nil, "state": "void"}},
			"buyer":        {{"user_id": []byte("U")}, {"user_id": []byte("u ")}, {"user_id": []byte("u\x00")}, {"user_id": []byte("u"), "sku": "other"}},
			"outbox":       {{"version": 2}},
		} {
			for _, c := range changes {
				query, args := insertion(table, c)
				mustExec(t, o, query, args...)
			}
		}
	})
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	refused := map[string][]override{
		"buyer": {{"quantity": -1}, {"quantity": 3}, {"user_id": []byte{}}, {"user_id": []byte(strings.Repeat("u", 256))}, {"user_id": nil}, {"most": 0}},
		"reservation": {
			{"quantity": 0}, {"quantity": -1}, {"version": 0}, {"amount": -1}, {"state": 1}, {"state": 8}, {"state": 4}, {"state": 7},
			{"state": 2, "ended_at": 1}, {"user_id": []byte{}}, {"rid": nil},
		},
		"stock_ledger": {{"phase": "gift"}, {"kind": ""}, {"kind": "lost"}, {"quantity": 0}, {"quantity": -1}, {"phase": "reserve"}, {"phase": "initial", "quantity": -1, "kind": ""}},
		"operation":    {{"kind": "x"}, {"state": "x"}, {"reason": ""}},
		"orders":       {{"quantity": 0}, {"amount": -1}, {"state": "x"}},
		"payment":      {{"state": "x"}, {"live": nil}, {"state": "captured"}, {"live": 2}},
	}
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		for table, changes := range refused {
			for _, c := range changes {
				query, args := insertion(table, c)
				rejects(t, o, query, args...)
			}
		}
	})
}

func TestSchemaRefusesWhatWasThere(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		for table, c := range map[string]override{
			"stock_ledger":  {"kind": "released"},                // settled twice
			"orders":        {"order_id": "o2"},                  // two orders of a reservation
			"payment":       {"intent_key": "r:2", "attempt": 2}, // two live ones
			"reservation":   {"sku": "other"},                    // a rid twice
			"outbox":        {"user_id": []byte("v")},            // a version twice
			"lease":         {"holder": "h2"},                    // two holders
			"inbox":         {"at": 2},                           // a message twice
			"operation":     {"kind": "status"},                  // an operation twice
			"buyer":         {"quantity": 2, "most": 3},          // a buyer twice
			"payment_event": {"status": "captured"},              // an event twice
		} {
			query, args := insertion(table, nil)
			mustExec(t, o, query, args...)
			query, args = insertion(table, c)
			rejects(t, o, query, args...)
		}
		query, args := insertion("payment", override{"intent_key": "r:8", "attempt": 8, "live": nil, "state": "captured", "applied_to": "x"})
		mustExec(t, o, query, args...)
		query, args = insertion("payment", override{"intent_key": "r:9", "attempt": 9, "live": nil, "state": "captured", "applied_to": "x"})
		rejects(t, o, query, args...) // two captures pay for one reservation
	})
}

func TestSchemaHoldsTheUnits(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		mustExec(t, o, "UPDATE sale_sku SET reserved = 60, sold = 40 WHERE sku = 'sku'")
		for _, set := range []string{
			"reserved = 61", "sold = 41", "reserved = -1", "sold = -1", "total = 99", "total = -1", "reserved = 101, sold = -1",
			"epoch = 0", "rebuilding = 2", "status = 'ajar'", "rate = 0", "purchase_limit = 0", "price = -1",
		} {
			rejects(t, o, "UPDATE sale_sku SET "+set+" WHERE sku = 'sku'")
		}
	})
}
