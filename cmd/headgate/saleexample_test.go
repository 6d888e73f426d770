package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// TestSaleExample runs the commands of examples/sale/README.md as they stand there, but for building, the ports, and the folder.
func TestSaleExample(t *testing.T) {
	t.Parallel()
	testservers.Need(t, "curl")
	shell := testservers.Need(t, "sh")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", "sale", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(text, -1) {
		script += string(block[1])
	}
	listen, admin := testservers.UnusedAddr(t), testservers.UnusedAddr(t)
	for old, now := range map[string]string{
		"go build -o headgate ./cmd/headgate\n": "", "./headgate ": binary + " ", "127.0.0.1:8080": listen, "127.0.0.1:9090": admin,
		"--sale-device device &\n": "--sale-device device &\ntrap 'kill $!' EXIT\nuntil curl -sf http://" + admin + "/readyz; do :; done\n",
		" examples/":               " " + root + "/examples/",
		"shop /spring/skus/mug/reservations/$rid/events -N -m 2 2>&-": "until shop /spring/skus/mug/reservations/$rid/events -N -m 1 2>&- | tee events | grep -q 'event: reserved'; do :; done; cat events",
		"shop /spring/orders\n": "until shop /spring/orders | tee orders.json | grep -q confirmed; do sleep 0.1; done; cat orders.json\n",
	} {
		script = strings.ReplaceAll(script, old, now)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + t.TempDir(), "HEADGATE_ADMIN_URL=http://" + admin}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
	if err := cmd.Run(); err != nil {
		t.Errorf("%v", err)
	}
	for _, want := range []string{`"status":"open"`, "event: reserved", `<strong id="status" data-status="captured">paid</strong>`, `"state":"confirmed"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing says %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out.String())
	}
}
