package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoMachineInTheText: the repository works wherever it lies, and with whatever registry its user has set up, so no text
// in it names a folder of one machine or a registry's host.
func TestNoMachineInTheText(t *testing.T) {
	t.Parallel()
	dir := repoRoot(t)
	walk(t, func(file string) error {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := machineWord(line, dir); word != "" {
				t.Errorf("%s:%d names %q", file, i+1, word)
			}
		}
		return nil
	})
}

// The words are taken apart here, so that this file passes its own test.
var (
	registryHost = regexp.MustCompile(`\b(proxy|sum)\.golang\.` + `org\b|\bgoproxy\.(cn|io)\b|\bregistry\.` + `(npmjs|yarnpkg|npmmirror)\.\w+` +
		`|\b(files\.)?pypi\.` + `org\b|pythonhosted\.` + `org\b|\b(deb|security|ftp)\.\w*\.?debian\.` + `org\b|\bregistry-1\.docker\.` + `io\b`)
	homeFolder = regexp.MustCompile(`(^|[\s"'=:(` + "`" + `])/(home/\w+|Users/\w+|root)/[\w.]`)
)

// machineWord returns what in a line names a machine, "" if nothing does.
func machineWord(line, dir string) string {
	if host := registryHost.FindString(line); host != "" {
		return host
	}
	if home := homeFolder.FindString(line); home != "" {
		return home
	}
	if strings.Count(dir, "/") > 1 && strings.Contains(line, dir+"/") {
		return dir
	}
	return ""
}

// TestMachineWordsAreSeen proves that the check can fail.
func TestMachineWordsAreSeen(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"GOPROXY=https://proxy" + ".golang.org": "proxy" + ".golang.org",
		"see registry" + ".npmjs.org/x":         "registry" + ".npmjs.org",
		"cd /home" + "/me/src":                  " /home" + "/me/s",
		"/root" + "/.cache":                     "/root" + "/.",
		"see /srv/" + "clone/doc.go":            "/srv/" + "clone",
		"a path /srv/other/doc.go":              "",
		"GET /home HTTP/1.1":                    "",
		"https://example.com/home/x/y":          "",
		"golang.org/x/net":                      "",
	} {
		if got := machineWord(line, "/srv/"+"clone"); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
