package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/saleadmin"
	"github.com/headgate-io/headgate/internal/testservers"
)

// servedPolicy has the rules of examples/sale/policy.yaml that a buyer meets, but for the one that bounds all requests together: everybody is
// let in, and the sale has to bear it.
const servedPolicy = `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  device: {cookie: did}
rules:
  - name: sale
    match: {paths: ['/_headgate/sales/**']}
    limits: [token_bucket 1000000/s burst=1000000]
  - name: sale-try-user
    match: {methods: [POST], paths: ['/_headgate/sales/{sale}/skus/{sku}/token', '/_headgate/sales/{sale}/skus/{sku}/reservations']}
    key: [user]
    missing: deny
    limits: [token_bucket 1/s burst=6]
  - name: sale-try-device
    match: {methods: [POST], paths: ['/_headgate/sales/{sale}/skus/{sku}/token', '/_headgate/sales/{sale}/skus/{sku}/reservations']}
    key: [device | ip]
    limits: [token_bucket 2/s burst=12]
  - name: sale-try-address
    match: {methods: [POST], paths: ['/_headgate/sales/{sale}/skus/{sku}/token', '/_headgate/sales/{sale}/skus/{sku}/reservations']}
    key: [ip]
    limits: [token_bucket 20/s burst=100]
  - name: sale-result
    match: {methods: [GET], paths: ['/_headgate/sales/{sale}/skus/{sku}/reservations/{rid}']}
    key: [user]
    missing: deny
    limits: [token_bucket 3/s burst=10]
  - name: sale-streams
    match: {methods: [GET], paths: ['/_headgate/sales/{sale}/skus/{sku}/reservations/{rid}/events']}
    key: [user | ip]
    limits: [concurrency 3 ttl=5m]
`

const (
	servedToken = "token-of-the-bench"
	servedKeys  = "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// served is the headgate command with --sale, in a process of its own, with a Redis and a PostgreSQL of its own.
type served struct {
	addr    string
	process *testservers.Process
	redis   *testservers.RedisServer
	// place has the processes of the stores.
	place salePlace
	admin *saleadmin.Client
	sales int
}

// serve builds the command and starts it, and waits until it is ready.
func serve(tb testservers.TB) (*served, error) {
	ctx, cancel := context.WithTimeout(context.Background(), saleTimeout)
	defer cancel()
	dir := scratch(tb)
	binary := buildHeadgate(tb, dir)
	policy := filepath.Join(dir, "policy.yaml")
	gateway, admin, err := freeAddresses(ctx)
	if err := errors.Join(err, os.WriteFile(policy, []byte(servedPolicy), 0o600)); err != nil {
		return nil, err
	}
	redis, postgres := testservers.Redis(tb, testservers.AppendOnly()), testservers.Postgres(tb, testservers.DurableData())
	s := &served{addr: gateway, redis: redis, place: salePlace{redis: redis.PID(), database: postgres.PID()}}
	s.process = testservers.Start(tb, testservers.Command{
		Path: binary, Dir: dir,
		Args: []string{
			"serve", "--policy", policy, "--listen", gateway, "--admin", admin, "--log-level", "warn",
			"--sale", "--sale-store", redis.URL(), "--pay", "simulated",
		},
		Env: []string{"HEADGATE_DB=" + postgres.Database(tb), "HEADGATE_SALE_KEYS=" + servedKeys, "HEADGATE_ADMIN_TOKEN=" + servedToken},
	})
	s.admin, err = saleadmin.NewClient(saleadmin.ClientConfig{URL: "http://" + admin, Token: servedToken})
	if err != nil {
		return nil, err
	}
	if err := testservers.Poll(ctx, func() error { return ready(ctx, admin) }); err != nil {
		return nil, fmt.Errorf("headgate serve is not ready: %w\n%s", err, s.process.LogTail())
	}
	return s, nil
}

// buildHeadgate builds the command of this working copy.
func buildHeadgate(tb testservers.TB, dir string) string {
	tb.Helper()
	binary := filepath.Join(dir, "headgate")
	build := exec.Command(testservers.Need(tb, "go"), "build", "-o", binary, "./cmd/headgate")
	build.Dir = ".." // the bench is run in its own folder: it is a module of its own
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("the headgate command cannot be built; run the bench in its folder: %v\n%s", err, out)
	}
	return binary
}

// freeAddresses are two that nobody listens on now.
func freeAddresses(ctx context.Context) (gateway, admin string, err error) {
	first, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	second, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // while the first is held, so that it is another
	if err != nil {
		return "", "", errors.Join(err, first.Close())
	}
	return first.Addr().String(), second.Addr().String(), errors.Join(first.Close(), second.Close())
}

func ready(ctx context.Context, admin string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Timeout: time.Second}).Do(req)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		err = fmt.Errorf("readyz is %d", res.StatusCode)
	}
	return errors.Join(err, res.Body.Close())
}

// open creates and opens another sale of so many units, and returns the path of its one sku when it can be bought.
func (s *served) open(units int64) (counter, error) {
	ctx, cancel := context.WithTimeout(context.Background(), saleTimeout)
	defer cancel()
	s.sales++
	k := counter{sale: "sale-" + strconv.Itoa(s.sales), served: s}
	now := time.Now()
	_, err := s.admin.Create(ctx, "", saleadmin.CreateOrder{Reason: "bench", Sale: saleadmin.SaleSpec{
		ID: k.sale, Title: "bench", Currency: "CNY", Rate: flashsale.MaxRate,
		OpensAt: now.Add(-time.Hour).Format(time.RFC3339), ClosesAt: now.Add(24 * time.Hour).Format(time.RFC3339),
		SKUs: []saleadmin.SKUSpec{{ID: saleKey.SKU, Title: "phone", Total: units, PurchaseLimit: 1, Price: 100}},
	}})
	if err != nil {
		return k, err
	}
	err = testservers.Poll(ctx, func() error {
		_, err := s.admin.Open(ctx, "", k.sale, saleadmin.OpenOrder{Reason: "bench"}) // until the check before it finds nothing
		return err
	})
	if err != nil {
		return k, err
	}
	v := newVisitor(-1 - s.sales)
	line := &wire{addr: s.addr}
	defer line.close()
	return k, testservers.Poll(ctx, func() error {
		if r, err := v.askToken(ctx, line, k); err != nil || r.status != http.StatusCreated {
			return fmt.Errorf("a token is answered %d %s, %w", r.status, r.doc.Code, err)
		}
		return nil
	})
}

// counter is where the units of a sale are reserved.
type counter struct {
	*served
	sale string
}

func (k counter) path() string { return "/_headgate/sales/" + k.sale + "/skus/" + saleKey.SKU }

// sold waits until nothing is under way, and returns how many units are reserved or sold as SQL has it, if every invariant holds.
func (k counter) sold() (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), saleTimeout)
	defer cancel()
	var sum int64
	err := testservers.Poll(ctx, func() error {
		report, err := k.admin.Report(ctx, k.sale, "", saleadmin.Page{})
		if err != nil {
			return err
		}
		sum = 0
		for _, audit := range report.Audits {
			if !audit.OK || !audit.Still || audit.UnderWay != "" {
				return fmt.Errorf("the audit of %s: %+v", audit.SKU, audit)
			}
			for _, state := range []flashsale.State{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed} {
				sum += audit.Reservations[state.String()]
			}
		}
		return nil
	})
	return sum, err
}

// servedCPU is processor time by whose it is.
type servedCPU struct {
	headgate, redis, database, load time.Duration
	// machine is that of everybody on the machine.
	machine time.Duration
}

func (s *served) cpu() (c servedCPU, err error) {
	var errs [4]error
	c.headgate, errs[0] = treeCPU(s.process.PID())
	c.redis, errs[1] = treeCPU(s.place.redis)
	c.database, errs[2] = treeCPU(s.place.database)
	c.load = cpuTime()
	c.machine, errs[3] = machineCPU()
	return c, errors.Join(errs[:]...)
}

func (c servedCPU) since(before servedCPU) servedCPU {
	return servedCPU{c.headgate - before.headgate, c.redis - before.redis, c.database - before.database, c.load - before.load, c.machine - before.machine}
}

// others returns how many cores' time others have taken meanwhile, who have nothing to do with the sale: without it a figure of a machine
// that is not alone says little.
func (c servedCPU) others(took time.Duration) float64 {
	return max(0, float64(c.machine-c.headgate-c.redis-c.database-c.load)/float64(took))
}

// redisCalls counts what clients have sent to a Redis: scripts, and looks at the server. What a script does is not a call, and neither is
// what this process has asked.
func redisCalls(server *testservers.RedisServer) (float64, error) {
	stats, err := server.Info("commandstats")
	if err != nil {
		return 0, err
	}
	var sum float64
	for name, text := range stats {
		switch strings.TrimPrefix(name, "cmdstat_") {
		case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "script|load", "config|get", "ping", "hello":
		default:
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(text, "calls="), ",")
		n, err := strconv.ParseFloat(calls, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO commandstats: %s is %q: %w", name, text, err)
		}
		sum += n
	}
	return sum, nil
}

// tellError says what an error was that the figures only count.
func tellError(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "  one of the errors: %v\n", err)
	}
}
