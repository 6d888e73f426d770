package sqlorders

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
)

// child is another process that has a file of SQLite open.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

func startChild(t *testing.T, file string) *child {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.CommandContext(t.Context(), program)}
	c.cmd.Env = append(os.Environ(), childFile+"="+file)
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.stdin, c.out = stdin, bufio.NewReader(out)
	t.Cleanup(func() { _ = stdin.Close(); _ = c.cmd.Wait() })
	return c
}

// says returns the next line of the child.
func (c *child) says(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil && line == "" {
		t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func refusedAsOpen(t *testing.T, url string) {
	t.Helper()
	o, err := Open(t.Context(), Config{URL: url})
	if err == nil {
		_ = o.Close()
	}
	wantCode(t, "a second Open", err, flashsale.CodeInvalidArgument)
	if !strings.Contains(err.Error(), "another process has the SQLite file") {
		t.Fatalf("it says %q", err)
	}
}

func TestSQLiteServesOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "orders of 50% & more?#.db")
	first := startChild(t, file)
	if got := first.says(t); got != "open" {
		t.Fatalf("the first process says %q", got)
	}
	refusedAsOpen(t, "sqlite:"+file)
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	refusedAsOpen(t, "sqlite:"+link) // the same by another name
	refusedAsOpen(t, "sqlite:"+dir+"/./"+filepath.Base(file))

	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	o := mustOpen(t, Config{URL: "sqlite:" + link})
	_, err := o.Sale(t.Context(), "of-the-child") // what it has committed
	noError(t, "Sale", err)
	refusedAsOpen(t, "sqlite:"+file) // by this very process, too
	second := startChild(t, file)
	if got := second.says(t); !strings.HasPrefix(got, "refused: ") || !strings.Contains(got, "another process has the SQLite file") {
		t.Fatalf("the second process says %q", got)
	}
	noError(t, "Close", o.Close())
	if got := startChild(t, file).says(t); got != "open" {
		t.Fatalf("after Close a process says %q", got)
	}
}

func TestSQLiteFilesThatAreNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "letter.db")
	if err := os.WriteFile(file, []byte(strings.Repeat("Dear database, ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, says := range map[string]string{
		"sqlite:" + file:            "not a sound SQLite database",
		"sqlite:" + dir:             "no file",
		"sqlite:" + file + "/below": "cannot be locked",
	} {
		o, err := Open(t.Context(), Config{URL: url})
		if err == nil {
			_ = o.Close()
		}
		wantCode(t, url, err, flashsale.CodeInvalidArgument)
		if !strings.Contains(err.Error(), says) {
			t.Fatalf("it says %q", err)
		}
	}
}

func TestSQLiteURLs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, url := range []string{"sqlite:" + dir + "/a.db", "sqlite://" + dir + "/b.db", "SQLite:" + dir + "/c.db"} {
		createSale(t, mustOpen(t, Config{URL: url}))
		file := dir + url[len(url)-5:]
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Fatalf("%s: %v", url, err)
		}
	}
}

// In memory each Orders has data of its own.
func TestMemoryIsNotShared(t *testing.T) {
	t.Parallel()
	createSale(t, mustOpen(t, Config{URL: "sqlite::memory:"}))
	_, err := mustOpen(t, Config{URL: "sqlite::memory:"}).Sale(t.Context(), "sale")
	wantCode(t, "Sale", err, flashsale.CodeUnknownSale)
}

// Nothing that reads can write, and what reads sees what was committed before.
func TestSQLiteReaders(t *testing.T) {
	t.Parallel()
	o := mustOpen(t, Config{URL: urls["sqlite"](t)})
	createSale(t, o)
	if _, err := o.readers.ExecContext(t.Context(), "DELETE FROM sale"); err == nil {
		t.Fatal("a connection that reads has written")
	}
	for i := range 50 {
		noError(t, "operation", func() error {
			_, err := o.BeginOperation(t.Context(), topUp(fmt.Sprintf("op%d", i), 1))
			return err
		}())
		sku, err := o.SKU(t.Context(), testKey)
		noError(t, "SKU", err)
		if sku.Total != int64(101+i) {
			t.Fatalf("after %d top-ups the total is %d", i+1, sku.Total)
		}
	}
}
