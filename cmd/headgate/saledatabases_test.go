package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// TestSaleOnMariaDB: two processes on one MariaDB and one Redis, looked after by headgate sale from the first command to the last. What the
// database is not set up for is said in time.
func TestSaleOnMariaDB(t *testing.T) {
	t.Parallel()
	stock := testservers.Redis(t, testservers.AppendOnly())
	database := testservers.MariaDB(t, testservers.DurableData(), testservers.Setting("log-bin=binlog"), testservers.Setting("sync-binlog=1"),
		testservers.Setting("binlog-format=STATEMENT"))
	url := "mariadb" + strings.TrimPrefix(database.Database(t), "mysql")
	f := newSaleFleet(t, 2, []string{"HEADGATE_DB=" + url}, "--sale-store", "redis://"+stock.Addr(), "--pay", "PAY")
	pay := f.startSimpay(f.balance() + "/_headgate/sales/~/webhook")
	for _, one := range f.instances {
		one.args[len(one.args)-1] = pay + "/v1"
	}
	set := func(global string) {
		t.Helper()
		if _, err := database.SQL("", "SET GLOBAL "+global); err != nil {
			t.Fatal(err)
		}
	}
	if got := runBinary(t, f.env, f.instances[0].args...); got.code != exitUsage || !strings.Contains(got.stderr, "binlog_format is STATEMENT") {
		t.Errorf("it cannot be replicated: %s", got)
	}
	set("binlog_format = ROW")
	f.run()
	one, two := f.instances[0], f.instances[1]
	if !strings.Contains(one.logged(), "where several sell together each allows as much") {
		t.Errorf("nobody warns of limits in memory: %s", one.logged())
	}

	const units = 12
	one.sale("create", writeSale(t, units), "--reason", "spring")
	f.until("it is loaded", func() error {
		if shown := two.sale("show", "spring"); !strings.Contains(shown, "draft") {
			return fmt.Errorf("%s", shown)
		}
		return nil
	})
	set("innodb_flush_log_at_trx_commit = 2")
	f.until("it is refused for what it could lose", func() error {
		got := runBinary(t, []string{"HEADGATE_ADMIN_TOKEN=" + saleSecret, "HEADGATE_ADMIN_URL=" + two.admin}, "sale", "open", "spring", "--reason", "x")
		if got.code != exitNo || !strings.Contains(got.stderr, "innodb_flush_log_at_trx_commit is 2, set it to 1") {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	set("innodb_flush_log_at_trx_commit = 1")
	two.operate("POST", "/spring/open", `{"reason": "it is time"}`)

	var all sync.WaitGroup
	crowd := f.crowd("u", 3*units)
	shopAll(&all, crowd)
	f.killed(f.does("sweep"))
	all.Wait()
	f.judge(crowd, units)
	buyer := crowd[0]
	for _, p := range crowd {
		if p.final == "confirmed" {
			buyer = p
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"story", "spring", buyer.user}, "confirmed"}, {[]string{"report", "spring"}, "audit of mug: all holds"}, {[]string{"rebuild", "spring", "--dry-run"}, "mug"},
		{[]string{"drain", "spring", "--reason", "all is sold"}, "draining"}, {[]string{"close", "spring", "--reason", "all is sold"}, "closed"},
		{[]string{"show", "spring"}, "closed"},
	} {
		if got := one.sale(c.args...); !strings.Contains(got, c.want) {
			t.Errorf("headgate sale %s says\n%s", strings.Join(c.args, " "), got)
		}
		one, two = two, one
	}
}

// writeSale writes the file of a sale that is open for an hour.
func writeSale(t *testing.T, units int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spring.yaml")
	text := fmt.Sprintf("id: spring\ntitle: Spring\ncurrency: EUR\nopens_at: %q\ncloses_at: %q\nskus:\n  - {id: mug, title: Mug, total: %d, price: 1250}\n",
		time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339), units)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSaleOnAFile: a process with a file and stock in memory is killed. The next one has all that was decided, makes the stock anew from it, and takes the
// tokens of before; a second one beside it is refused.
func TestSaleOnAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sale.db")
	f := newSaleFleet(t, 1, nil, "--db", "sqlite:"+file, "--pay", "simulated")
	one := f.instances[0]
	f.run()
	f.create(3)
	one.operate("POST", "/spring/open", `{"reason": "it is time"}`)
	paid, held := f.reserved("paid"), f.reserved("held")
	paid.shop()
	late := &shopper{saleFleet: f, user: "late"}
	late.step()
	second := append([]string{}, one.args...)
	for i, arg := range second {
		if arg == "--listen" || arg == "--admin" {
			second[i+1] = "127.0.0.1:0"
		}
	}
	if got := runBinary(t, f.env, second...); got.code != exitUsage || !strings.Contains(got.stderr, "another process has the SQLite file") {
		t.Errorf("a second process: %s", got)
	}
	one.kill()
	one.run()
	f.until("the stock is there again", func() error {
		r := one.operate("GET", "/spring", "")
		if !strings.Contains(r.text, `"available":1,"held":1,"sold":1`) {
			return fmt.Errorf("%s", r.text)
		}
		return nil
	})
	if got := strings.Join(held.orders(), ","); got != "reserved" {
		t.Errorf("what was held is %q", got)
	}
	held.shop()
	late.shop()
	f.judge([]*shopper{paid, held, late}, 3)
}

// TestSaleAddresses: what is wrong with the address of a database is one line that says what to do, without the password; a server that is not
// there is waited for.
func TestSaleAddresses(t *testing.T) {
	t.Parallel()
	postgres := testservers.Postgres(t)
	secret := postgres.Password()
	address := func(password, at, database string) string {
		return "postgres://" + postgres.User() + ":" + password + "@" + at + "/" + database
	}
	for name, c := range map[string]struct{ db, want string }{
		"a wrong password":   {address("wr0ng%2F", postgres.Addr(), "postgres"), "check user and password"},
		"not spelt":          {address("wr0ng/1", postgres.Addr(), "postgres"), "not percent-encoded"},
		"spelt as if a port": {address("1/wr0ng", postgres.Addr(), "postgres"), "not percent-encoded"},
		"no database":        {address(secret, postgres.Addr(), ""), "names no database"},
		"no such database":   {address(secret, postgres.Addr(), "none"), "there is no such database; create it"},
		"no TLS":             {address(secret, postgres.Addr(), "postgres?sslmode=require"), "give sslmode=disable"},
		"TLS of MySQL":       {address(secret, postgres.Addr(), "postgres?tls=true"), "TLS is sslmode=require there"},
		"another kind":       {"oracle" + strings.TrimPrefix(address(secret, postgres.Addr(), "postgres"), "postgres"), "does not begin as any kind of database does"},
		"of Go":              {"mysql://me:wr0ng@unix(/run/mysqld.sock)/shop", "mysql://USER:PASSWORD@/DATABASE?socket=/PATH"},
		"parameters of Go":   {"mysql://me:wr0ng@127.0.0.1/shop?parseTime=true", "MySQL's only one is tls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newSaleFleet(t, 1, []string{"HEADGATE_DB=" + c.db}, "--sale-store", "redis://127.0.0.1:1", "--pay", "none")
			got := runBinary(t, f.env, f.instances[0].args...)
			if got.code != exitUsage || !strings.Contains(got.stderr, c.want) || strings.Contains(got.stderr, "wr0ng") || strings.Contains(got.stderr, secret) {
				t.Errorf("want %q: %s", c.want, got)
			}
			if lines := strings.Count(got.stderr, "\n"); !strings.HasPrefix(got.stderr, "headgate: ") || lines != 1 {
				t.Errorf("it says more than a line: %s", got)
			}
		})
	}
	t.Run("not there", func(t *testing.T) {
		t.Parallel()
		f := newSaleFleet(t, 1, []string{"HEADGATE_DB=" + address(secret, "127.0.0.1:1", "postgres")}, "--sale-store", "redis://127.0.0.1:1", "--pay", "none")
		one := f.instances[0]
		one.begin()
		f.until("it says what is missing", func() error {
			r, err := f.send(f.ctx, "GET", one.admin+"/status", "", "")
			if err == nil && !strings.Contains(r.text, "it cannot be reached: check host and port") {
				err = fmt.Errorf("%s", r.text)
			}
			return err
		})
		if r, err := f.send(f.ctx, "GET", one.admin+"/readyz", "", ""); err != nil || r.status != http.StatusServiceUnavailable {
			t.Errorf("readyz: %+v, %v", r, err)
		}
		one.terminate()
		one.awaitEnd()
		if strings.Contains(one.logged(), secret) {
			t.Errorf("a password is logged: %s", one.logged())
		}
	})
}
