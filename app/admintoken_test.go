package app

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func addr(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }

// TestTokenFile: a generated token lies where its user finds it, and nobody else reads it, for as long as it is good.
func TestTokenFile(t *testing.T) {
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	token, file, err := writeToken("", addr(9090))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(runtime, "headgate", "admin-9090.token"); file.path != want {
		t.Errorf("it lies in %s, want %s", file.path, want)
	}
	if text, err := os.ReadFile(file.path); err != nil || string(text) != token+"\n" || len(token) < 26 {
		t.Errorf("the file has %q, the token is %q, %v", text, token, err)
	}
	for path, want := range map[string]os.FileMode{file.path: 0o600, filepath.Dir(file.path): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v; %v", path, info.Mode().Perm(), want, err)
		}
	}
	other, otherFile, err := writeToken("", addr(9091))
	if err != nil || other == token || otherFile.path == file.path {
		t.Errorf("another listener has %q in %v, %v", other, otherFile, err)
	}
	// A process that was killed has left its file; the next one on that port writes its own, which the first does not remove.
	next, nextFile, err := writeToken("", addr(9090))
	if err != nil || next == token {
		t.Errorf("the next process has %q, %v", next, err)
	}
	if err := file.remove(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(nextFile.path); err != nil || string(text) != next+"\n" {
		t.Errorf("the file has %q, want %q, %v", text, next, err)
	}
	for range 2 {
		if err := nextFile.remove(); err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(runtime, "headgate", "*")); err != nil || len(left) != 1 {
		t.Errorf("what is left: %v, %v", left, err)
	}
}

// TestTokenFileByAddress: listeners of one port on several addresses of loopback do not take each other's file.
func TestTokenFileByAddress(t *testing.T) {
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	for ip, want := range map[string]string{
		"127.0.0.1": "admin-9090.token", "::ffff:127.0.0.1": "admin-9090.token", "127.0.0.2": "admin-127.0.0.2-9090.token", "::1": "admin-__1-9090.token",
	} {
		_, file, err := writeToken("", &net.TCPAddr{IP: net.ParseIP(ip), Port: 9090})
		if err != nil {
			t.Fatal(err)
		}
		if got := filepath.Base(file.path); got != want {
			t.Errorf("%s: it lies in %s, want %s", ip, got, want)
		}
	}
}

// TestTokenFileReplacesFilesOnly: a device, a link, a pipe or a folder that was named by mistake is still there afterwards.
func TestTokenFileReplacesFilesOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(file string) error
		says string
	}{
		"a link":   {func(file string) error { return os.Symlink("elsewhere", file) }, "is no regular file"},
		"a folder": {func(file string) error { return os.Mkdir(file, 0o700) }, "is no regular file"},
		"a file":   {func(file string) error { return os.WriteFile(file, []byte("old"), 0o644) }, ""},
		"nothing":  {func(string) error { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "token")
			if err := c.make(file); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(file)
			token, _, err := writeToken(file, addr(9090))
			after, statErr := os.Lstat(file)
			switch {
			case statErr != nil:
				t.Fatal(statErr)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !os.SameFile(before, after)):
				t.Errorf("got %v, and there is %v", err, after.Mode())
			case c.says == "" && (err != nil || token == "" || after.Mode() != 0o600):
				t.Errorf("got %v, and there is %v", err, after.Mode())
			}
		})
	}
}

// TestTokenFolder: a folder that others can get at is not used.
func TestTokenFolder(t *testing.T) {
	for name, c := range map[string]struct {
		make func(folder string) error
		says string
	}{
		"open to others": {func(folder string) error {
			if err := os.Mkdir(folder, 0o700); err != nil {
				return err
			}
			return os.Chmod(folder, 0o755)
		}, "can be used by others (mode 0755)"},
		"a file":    {func(folder string) error { return os.WriteFile(folder, nil, 0o600) }, "is not a folder"},
		"a symlink": {func(folder string) error { return os.Symlink(t.TempDir(), folder) }, "is not a folder"},
		"somebody else's": {func(folder string) error {
			if os.Getuid() != 0 {
				t.Skip("only root gives folders away")
			}
			if err := os.Mkdir(folder, 0o700); err != nil {
				return err
			}
			return os.Chown(folder, 65534, 65534)
		}, "belongs to another user"},
		"nowhere": {func(folder string) error { return os.Remove(filepath.Dir(folder)) }, "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := filepath.Join(t.TempDir(), "run")
			if err := os.Mkdir(runtime, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("XDG_RUNTIME_DIR", runtime)
			if err := c.make(filepath.Join(runtime, "headgate")); err != nil {
				t.Fatal(err)
			}
			if _, f, err := writeToken("", addr(9090)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, %v, want an error that says %q", f, err, c.says)
			}
		})
	}
}

// TestTokenFolderByDefault is in the folder for temporary files, by user; a relative XDG_RUNTIME_DIR is none.
func TestTokenFolderByDefault(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, runtime := range []string{"", "run"} {
		t.Setenv("XDG_RUNTIME_DIR", runtime)
		folder, err := tokenFolder()
		if ok, _ := regexp.MatchString(`^`+regexp.QuoteMeta(temp)+`/headgate-\d+$`, folder); err != nil || !ok {
			t.Errorf("got %s, %v", folder, err)
		}
	}
}

// TestServeToken: the status is read with the token of the file that the log names, and the file goes with the process.
func TestServeToken(t *testing.T) {
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	named := filepath.Join(t.TempDir(), "my.token")
	for _, file := range []string{"", named} {
		r := start(t, ServeConfig{
			Policy: writePolicy(t, twoAnHour), Upstreams: []string{"http://127.0.0.1:9"}, Admin: "127.0.0.1:0", AdminTokenFile: file,
		})
		if file == "" {
			file = filepath.Join(runtime, "headgate", "admin-"+r.admin[strings.LastIndex(r.admin, ":")+1:]+".token")
		}
		token, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for auth, want := range map[string]int{"": http.StatusUnauthorized, "Bearer " + strings.TrimSpace(string(token)): http.StatusOK} {
			if status, body := get(t, r.admin+"/status", "Authorization", auth); status != want {
				t.Errorf("with %q: %d %s, want %d", auth, status, body, want)
			}
		}
		if strings.Contains(r.first, strings.TrimSpace(string(token))) || !strings.Contains(r.first, "admin_token_file="+file) {
			t.Errorf("the first line is %s", r.first)
		}
		r.stop()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("the file is left: %v", err)
		}
	}
}

// TestServeWithoutToken: where a token cannot be left, the gate and its probes work, and the status is shut.
func TestServeWithoutToken(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(t.TempDir(), "missing"))
	r := start(t, ServeConfig{Policy: writePolicy(t, twoAnHour), Upstreams: []string{"http://127.0.0.1:9"}, Admin: "127.0.0.1:0"})
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/status": http.StatusUnauthorized} {
		if status, body := get(t, r.admin+path); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}
