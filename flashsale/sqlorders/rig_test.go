package sqlorders

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/internal/leaktest"
	"github.com/headgate-io/headgate/internal/testservers"
)

// servers are those that all tests of the package share, each test with a database of its own.
type servers struct {
	postgres *testservers.Shared[*testservers.PostgresServer]
	mariadb  *testservers.Shared[*testservers.MariaDBServer]
}

var shared = servers{
	postgres: testservers.Share(func(tb testservers.TB) *testservers.PostgresServer { return testservers.Postgres(tb) }),
	mariadb:  testservers.Share(func(tb testservers.TB) *testservers.MariaDBServer { return testservers.MariaDB(tb) }),
}

func TestMain(m *testing.M) {
	if file := os.Getenv(childFile); file != "" {
		childOpens(file)
	}
	os.Exit(leaktest.Main(m, shared.close))
}

func (s *servers) close() {
	s.postgres.Close()
	s.mariadb.Close()
}

// urls makes an empty database for a test, by the name of each.
var urls = map[string]func(tb testing.TB) string{
	"sqlite":   func(tb testing.TB) string { return "sqlite:" + tb.TempDir() + "/orders.db" },
	"memory":   func(testing.TB) string { return "sqlite::memory:" },
	"postgres": func(tb testing.TB) string { return shared.postgres.Get(tb).Database(tb) },
	"mariadb":  func(tb testing.TB) string { return shared.mariadb.Get(tb).Database(tb) },
}

// eachDB runs a test on every database, in parallel.
func eachDB(t *testing.T, f func(t *testing.T, o *Orders)) {
	t.Helper()
	eachDBWith(t, func(*Config) {}, f)
}

// eachDBWith is eachDB with changes to the Config.
func eachDBWith(t *testing.T, change func(cfg *Config), f func(t *testing.T, o *Orders)) {
	t.Helper()
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{URL: url(t), MaxConns: 8, Timeout: patience}
			change(&cfg)
			f(t, mustOpen(t, cfg))
		})
	}
}

// patience is how long a call may take where a test is not about that: the machine may stand still for a while.
const patience = time.Minute

func mustOpen(t *testing.T, cfg Config) *Orders {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = patience
	}
	o, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// wantCode fails unless an error has a code; "" stands for no error.
func wantCode(t *testing.T, what string, err error, want flashsale.Code) {
	t.Helper()
	if flashsale.CodeOf(err) != want || want == "" && err != nil {
		t.Fatalf("%s: got %v, want code %q", what, err, want)
	}
}

func noError(t *testing.T, what string, err error) {
	t.Helper()
	wantCode(t, what, err, "")
}

var testKey = flashsale.Key{Sale: "sale", SKU: "sku"}

// testSale has two skus: "sku" with 100 units and a purchase limit of 2, and "other" with 10.
func testSale(id string) *flashsale.Sale {
	opens := time.Date(2030, 1, 2, 10, 0, 0, 0, time.UTC)
	return &flashsale.Sale{
		ID: id, Title: "秒杀", Currency: "CNY", OpensAt: opens, ClosesAt: opens.Add(time.Hour), Zone: "Asia/Shanghai",
		SKUs: []flashsale.SKU{
			{ID: "sku", Title: "one", Total: 100, PurchaseLimit: 2, Price: 199_00},
			{ID: "other", Title: "two", Total: 10},
		},
	}
}

func createSale(t *testing.T, o *Orders) {
	t.Helper()
	noError(t, "CreateSale", o.CreateSale(t.Context(), testSale("sale")))
}

// mustExec runs a statement around all that the package would check.
func mustExec(t *testing.T, o *Orders, query string, args ...any) {
	t.Helper()
	if _, err := o.db.ExecContext(t.Context(), o.d.bind(query), args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// rejects fails unless the schema refuses a statement.
func rejects(t *testing.T, o *Orders, query string, args ...any) {
	t.Helper()
	_, err := o.db.ExecContext(t.Context(), o.d.bind(query), args...)
	if kind := o.d.classify(err).kind; err == nil || kind != failConstraint && kind != failDuplicate {
		t.Fatalf("%s: got %v, want that the schema refuses it", query, err)
	}
}

// pollUntil asks until the answer is yes, or an error.
func pollUntil(t *testing.T, yes func() (bool, error)) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var ok bool
	var failed error
	err := testservers.Poll(ctx, func() error {
		if ok, failed = yes(); !ok && failed == nil {
			return errors.New("not yet")
		}
		return nil
	})
	return errors.Join(err, failed)
}
