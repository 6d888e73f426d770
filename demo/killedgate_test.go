package demo

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

const adminSecret = "the-token-of-the-admin-listener"

// gateProcess is "headgate serve" with what it needs, one life after the other.
type gateProcess struct {
	t                                   *testing.T
	path, shop, pay, keys, sale, policy string
	listen, admin                       string
	stock, limits                       *testservers.RedisServer
	db                                  *testservers.PostgresServer
	mu                                  sync.Mutex
	process                             *testservers.Process
}

func buildBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headgate")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../cmd/headgate").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// find finds addresses that every life of it listens on.
func (g *gateProcess) find() {
	g.t.Helper()
	var err error
	if g.policy, err = filepath.Abs(filepath.Join("..", PolicyName)); err != nil {
		g.t.Fatal(err)
	}
	g.listen, g.admin = testservers.UnusedAddr(g.t), testservers.UnusedAddr(g.t)
}

// start starts it and waits until it is ready.
func (g *gateProcess) start(ctx context.Context) {
	g.t.Helper()
	process := testservers.Start(g.t, testservers.Command{
		Path: g.path,
		Args: []string{
			"serve", "--policy", g.policy, "--upstream", "http://" + g.shop, "--listen", g.listen, "--admin", g.admin, "--store", "redis://" + g.limits.Addr(),
			"--namespace", g.sale, "--sale", "--sale-store", "redis://" + g.stock.Addr(), "--pay", g.pay, "--sale-device", "device",
		},
		Env: []string{"HEADGATE_ADMIN_TOKEN=" + adminSecret, "HEADGATE_DB=" + g.db.URL(), "HEADGATE_SALE_KEYS=" + g.keys, "HEADGATE_PAY_SECRET=" + killedSecret},
	})
	g.mu.Lock()
	g.process = process
	g.mu.Unlock()
	if err := testservers.Poll(ctx, func() error { return g.ready(ctx) }); err != nil {
		g.t.Fatalf("the gate does not get ready: %v\n%s", err, process.LogTail())
	}
}

func (g *gateProcess) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.admin+"/readyz", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+adminSecret)
	req.Close = true
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %d", res.StatusCode)
	}
	return nil
}

// kill ends it as a machine does that loses its power.
func (g *gateProcess) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.process.Kill()
}
