package sqlorders

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// A process that is stopped in the middle of a transaction, or has lost its network, cannot give up the row of the sku that it has locked:
// the server takes it away, and others go on.
func TestTransactionThatStandsStill(t *testing.T) {
	t.Parallel()
	const bound = 3 * time.Second // of the one who stands still, who must get so far that it holds the row
	const row = "WHERE sale = 'sale' AND sku = 'sku'"
	for _, name := range []string{"postgres", "mariadb"} {
		for what, statement := range map[string]string{"locks": "SELECT seq FROM sale_sku " + row + " FOR UPDATE", "writes": "UPDATE sale_sku SET seq = seq + 1 " + row} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				url := urls[name](t)
				other := mustOpen(t, Config{URL: url})
				createSale(t, other)
				stopped := mustOpen(t, Config{URL: url, MaxConns: 1, Timeout: bound})
				if what == "writes" { // the one connection has made a snapshot, which may stand still, and is bounded again
					noError(t, "Snapshot", stopped.Snapshot(t.Context(), testKey, 1, func(*flashsale.LoadPart) error { return standFor(t, 2*bound) }))
				}

				begun, err := stopped.db.BeginTx(t.Context(), nil)
				noError(t, "BeginTx", err)
				_, err = begun.ExecContext(t.Context(), statement)
				noError(t, what, err)

				_, err = other.BeginOperation(t.Context(), topUp("op", 1))
				noError(t, "the one who comes after", err)
				err = begun.Commit()
				if kind := stopped.d.classify(err).kind; err == nil || kind != failLost {
					t.Fatalf("the one who stood still commits: %v, of kind %v", err, kind)
				}
				totalIs(t, stopped, 101)
				sku, err := other.SKU(t.Context(), testKey)
				noError(t, "SKU", err)
				if sku.Seq != 0 {
					t.Fatalf("the transaction that stood still has changed the sku: %+v", sku)
				}
			})
		}
	}
}

// standFor waits until some time has passed.
func standFor(t *testing.T, d time.Duration) error {
	t.Helper()
	over := time.Now().Add(d)
	return pollUntil(t, func() (bool, error) { return time.Now().After(over), nil })
}
