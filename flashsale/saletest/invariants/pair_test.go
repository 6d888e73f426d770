package invariants

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/redis/rueidis"

	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/redisstock"
)

const (
	memoryAndSQLite  = "memory and SQLite"
	redisAndPostgres = "Redis and PostgreSQL"
	redisAndMariaDB  = "Redis and MariaDB"
)

// eachPair runs a test on every pair of stores, in parallel.
func eachPair(t *testing.T, f func(t *testing.T, pair string)) {
	t.Helper()
	for _, pair := range []string{memoryAndSQLite, redisAndPostgres, redisAndMariaDB} {
		t.Run(pair, func(t *testing.T) {
			t.Parallel()
			f(t, pair)
		})
	}
}

// databaseOf makes an empty database for a test, and returns its URL.
func databaseOf(t *testing.T, pair string) string {
	t.Helper()
	switch pair {
	case redisAndPostgres:
		return shared.postgres.Get(t).Database(t)
	case redisAndMariaDB:
		return shared.mariadb.Get(t).Database(t)
	}
	return "sqlite:" + filepath.Join(t.TempDir(), "orders.db")
}

// openRaw opens a database beside the package that keeps it, so that what that package says of it can be checked.
func openRaw(t *testing.T, pair, address string) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", address
	switch pair {
	case memoryAndSQLite:
		driver, dsn = "sqlite", "file:"+address[len("sqlite:"):]+"?_pragma=busy_timeout(20000)&_pragma=query_only(1)"
	case redisAndMariaDB:
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		cfg := mysql.NewConfig()
		cfg.User, cfg.Net, cfg.Addr, cfg.DBName = u.User.Username(), "tcp", u.Host, u.Path[1:]
		cfg.Passwd, _ = u.User.Password()
		driver, dsn = "mysql", cfg.FormatDSN()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(4)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// store is where a Stock is.
type store interface {
	// open returns a Stock on it; it may be the one that was open before.
	open() porttest.AnyStock
	// lose loses everything. Of a store in memory that is the end of its process: the Stock has to be opened again.
	lose()
	// image is all that is there, and restore puts it there again, whatever was written since: a failover to a replica that had not
	// got the last writes. Nil and nothing for a store in memory, which has no replica.
	image() image
	restore(image)
	// dump is all that is there, in words that can be compared.
	dump() []string
}

func storeOf(t *testing.T, pair string, now func() time.Time) store {
	t.Helper()
	if pair == memoryAndSQLite {
		m := &memory{now: now}
		m.lose()
		t.Cleanup(func() { _ = m.stock.Load().Close() })
		return m
	}
	return newRedis(t, pair, now)
}

// memory is a store in memory.
type memory struct {
	now   func() time.Time
	stock atomic.Pointer[memstock.Stock]
}

func (m *memory) open() porttest.AnyStock { return m.stock.Load() }
func (m *memory) image() image            { return nil }
func (m *memory) restore(image)           {}
func (m *memory) dump() []string          { return nil }

func (m *memory) lose() {
	if old := m.stock.Swap(memstock.New(memstock.Config{Now: m.now})); old != nil {
		_ = old.Close()
	}
}

// redis is a namespace in a Redis that others use too.
type redis struct {
	t      *testing.T
	stock  *redisstock.Stock
	client rueidis.Client
	space  string
}

// image has the keys of a namespace, each as DUMP gives it.
type image map[string]string

var namespaces atomic.Int64

func newRedis(t *testing.T, pair string, now func() time.Time) *redis {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{shared.redis[pair].Get(t).Addr()}, ForceSingleClient: true, DisableRetry: true, DisableCache: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r := &redis{t: t, client: client, space: "t" + strconv.FormatInt(namespaces.Add(1), 10)}
	r.stock, err = redisstock.New(t.Context(), redisstock.Config{Client: client, Namespace: r.space, Now: now, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.stock.Close() })
	return r
}

func (r *redis) open() porttest.AnyStock { return r.stock }

func (r *redis) lose() { r.restore(nil) }

// imageScript and restoreScript are one step each, whatever others do meanwhile.
var (
	imageScript = rueidis.NewLuaScript(`local out = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  out[#out + 1] = key
  out[#out + 1] = redis.call('DUMP', key)
end
return out`)
	restoreScript = rueidis.NewLuaScript(`for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end
for i = 2, #ARGV, 2 do redis.call('RESTORE', ARGV[i], 0, ARGV[i + 1]) end
return 1`)
)

func (r *redis) image() image {
	all, err := imageScript.Exec(context.Background(), r.client, nil, []string{r.space + ":*"}).AsStrSlice()
	if err != nil {
		r.t.Error(err)
	}
	i := image{}
	for n := 0; n+1 < len(all); n += 2 {
		i[all[n]] = all[n+1]
	}
	return i
}

func (r *redis) restore(i image) {
	args := []string{r.space + ":*"}
	for key, text := range i {
		args = append(args, key, text)
	}
	if err := restoreScript.Exec(context.Background(), r.client, nil, args).Error(); err != nil {
		r.t.Error(err)
	}
}

func (r *redis) dump() []string {
	var lines []string
	for key, text := range r.image() {
		lines = append(lines, strconv.Quote(key)+" "+strconv.Quote(text))
	}
	slices.Sort(lines)
	return lines
}
