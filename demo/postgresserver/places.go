package postgresserver

import (
	"path/filepath"
	"slices"
	"strconv"
)

// installed is where Debian keeps the programs of each version, the newest first.
func installed() []string {
	paths, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil { // of a pattern that is malformed
		return nil
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	slices.SortFunc(paths, func(a, b string) int { return version(b) - version(a) })
	return paths
}
