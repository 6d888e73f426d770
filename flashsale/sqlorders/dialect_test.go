package sqlorders

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestBind(t *testing.T) {
	t.Parallel()
	pg, lite := postgres(""), sqliteDialect("")
	for query, want := range map[string]string{
		"SELECT 1":              "SELECT 1",
		"?":                     "$1",
		"a = ? AND b IN (?,?)":  "a = $1 AND b IN ($2,$3)",
		strings.Repeat("?", 11): "$1$2$3$4$5$6$7$8$9$10$11",
	} {
		if got := pg.bind(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
		if got := lite.bind(query); got != query {
			t.Errorf("%s: got %s", query, got)
		}
	}
}

func TestOnConflict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ set, conflict, duplicate string }{
		{"", " ON CONFLICT (a, b) DO NOTHING", " ON DUPLICATE KEY UPDATE a = a"},
		{"n = t.n + NEW(n), m = NEW(m)", " ON CONFLICT (a, b) DO UPDATE SET n = t.n + excluded.n, m = excluded.m", " ON DUPLICATE KEY UPDATE n = t.n + VALUES(n), m = VALUES(m)"},
	} {
		var set []string
		if tc.set != "" {
			set = []string{tc.set}
		}
		for d, want := range map[*dialect]string{postgres(""): tc.conflict, sqliteDialect(""): tc.conflict, mariadb(""): tc.duplicate} {
			if got := d.onConflict("a, b", set...); got != want {
				t.Errorf("%s: got %q, want %q", d.name, got, want)
			}
		}
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	query, args := in(postgres(""), "id", []int64{1, 2})
	if query != "id = ANY(?)" || !reflect.DeepEqual(args, []any{[]int64{1, 2}}) {
		t.Errorf("got %s, %v", query, args)
	}
	query, args = in(mariadb(""), "id", []string{"a", "b"})
	if query != "id IN (?,?)" || !reflect.DeepEqual(args, []any{"a", "b"}) {
		t.Errorf("got %s, %v", query, args)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "秒 a": "秒 a", "a\x00b": "a\uFFFDb", "\xff": "\uFFFD", "a\xf0\x9f": "a\uFFFD"} {
		if got := text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTimesAreMicroseconds(t *testing.T) {
	t.Parallel()
	if micros(time.Time{}) != 0 || !timeAt(0).IsZero() {
		t.Error("the zero time is not 0")
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901999, time.FixedZone("", 8*3600))
	if got := timeAt(micros(at)); !got.Equal(at.Truncate(time.Microsecond)) || got.Location() != time.UTC {
		t.Errorf("got %s", got)
	}
}

// More rows than a statement takes, of every kind, NULL and bytes of every value among them.
func TestInsertManyRows(t *testing.T) {
	t.Parallel()
	every := make([]byte, 255)
	for i := range every {
		every[i] = byte(i)
	}
	eachDB(t, func(t *testing.T, o *Orders) {
		const n = 2*maxRows + 1
		table := columnsOf("reservation", "rid", "sale", "sku", "user_id bytes", "quantity int", "state int", "version int", "reason", "until_at int",
			"pay_granted int", "order_id", "amount int", "currency", "origin", "epoch int", "seq int", "created_at int", "changed_at int", "ended_at int")
		rows := make([][]any, n)
		for i := range rows {
			ended, state := any(nil), int64(2)
			if i%2 == 1 {
				ended, state = int64(i), 7
			}
			rows[i] = []any{fmt.Sprintf("r%05d", i), "sale", "sku", every, int64(i + 1), state, int64(1), "a'b\\\"?$1%", int64(0), int64(0), "", int64(0), "CNY", "",
				int64(1), int64(1) << 62, int64(1), int64(1), ended}
		}
		noError(t, "insert", o.write(t.Context(), "Test", func(x *tx) error { return x.insert(table, "", rows) }))
		noError(t, "insert again", o.write(t.Context(), "Test", func(x *tx) error { return x.insert(table, x.d.onConflict("rid"), rows) }))
		noError(t, "insert nothing", o.write(t.Context(), "Test", func(x *tx) error { return x.insert(table, "", nil) }))
		i := 0
		err := o.read(t.Context(), "Test", func(x *tx) error {
			return x.query("SELECT rid, user_id, quantity, reason, seq, ended_at FROM reservation ORDER BY rid", nil, func(scan func(...any) error) error {
				var rid, reason string
				var user []byte
				var quantity, seq int64
				var ended *int64
				if err := scan(&rid, &user, &quantity, &reason, &seq, &ended); err != nil {
					return err
				}
				if rid != fmt.Sprintf("r%05d", i) || !bytes.Equal(user, every) || quantity != int64(i+1) || reason != "a'b\\\"?$1%" || seq != 1<<62 ||
					(ended == nil) != (i%2 == 0) || ended != nil && *ended != int64(i) {
					return fmt.Errorf("row %d: %s, %x, %d, %q, %d, %v", i, rid, user, quantity, reason, seq, ended)
				}
				i++
				return nil
			})
		})
		noError(t, "read", err)
		if i != n {
			t.Fatalf("%d rows, want %d", i, n)
		}
	})
}

func TestClassify(t *testing.T) {
	t.Parallel()
	pg := func(code string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, ConstraintName: "c"})
	}
	my := func(number uint16, message string) error {
		return fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number, Message: message})
	}
	for _, tc := range []struct {
		err  error
		kind failKind
		what string
	}{
		{pg("40001"), failRetry, ""}, {pg("40P01"), failRetry, ""}, {pg("55P03"), failRetry, ""},
		{pg("23505"), failDuplicate, "c"}, {pg("23514"), failConstraint, "c"}, {pg("23502"), failConstraint, "c"},
		{pg("57P01"), failLost, ""}, {pg("57014"), failLost, ""}, {pg("53300"), failLost, ""}, {pg("08006"), failLost, ""}, {pg("25006"), failLost, ""},
		{pg("28P01"), failRefused, ""}, {pg("42501"), failRefused, ""}, {pg("42601"), failOther, ""},
		{my(1213, ""), failRetry, ""}, {my(1205, ""), failRetry, ""}, {my(1020, ""), failRetry, ""},
		{my(1062, "Duplicate entry 'x' for key 'orders_rid'"), failDuplicate, "orders_rid"},
		{my(4025, "CONSTRAINT `sku_units` failed for `db`.`sale_sku`"), failConstraint, "sku_units"},
		{my(3819, "Check constraint 'sku_units' is violated."), failConstraint, "sku_units"},
		{my(1048, "Column 'rid' cannot be null"), failConstraint, ""},
		{my(1053, ""), failLost, ""}, {my(1040, ""), failLost, ""}, {my(1290, ""), failLost, ""}, {mysql.ErrInvalidConn, failLost, ""},
		{my(1045, ""), failRefused, ""}, {my(1142, ""), failRefused, ""}, {my(1064, ""), failOther, ""},
	} {
		classify := classifyPostgres
		if _, ok := errors.AsType[*pgconn.PgError](tc.err); !ok {
			classify = classifyMySQL
		}
		if got := classify(tc.err); got.kind != tc.kind || got.what != tc.what {
			t.Errorf("%v: got %+v, want %d %q", tc.err, got, tc.kind, tc.what)
		}
	}
}

// TestWithoutTLSOrWithoutAServer: pgx tries with TLS and then without, and tells of both. A server that stops in between is not one whose
// settings somebody has to change.
func TestWithoutTLSOrWithoutAServer(t *testing.T) {
	t.Parallel()
	noTLS := errors.New("127.0.0.1:5432 (localhost): server refused TLS connection")
	for want, err := range map[failKind]error{
		failRefused: fmt.Errorf("failed to connect: %w", noTLS),
		failLost:    fmt.Errorf("failed to connect: %w", errors.Join(noTLS, &net.OpError{Op: "dial", Err: errors.New("connection refused")})),
	} {
		if got := classifyPostgres(err).kind; got != want {
			t.Errorf("%v is %d, want %d", err, got, want)
		}
	}
}
