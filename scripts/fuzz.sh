#!/bin/bash
# Runs every fuzz target of the module, one after the other, each for the time given (default 20s). What a target finds is
# kept in its package's testdata/fuzz and belongs into the repository, with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
time_each="${1:-20s}"

found=0
while read -r file; do
	package="./$(dirname "$file")"
	while read -r target; do
		found=$((found + 1))
		echo "== $package $target ($time_each)"
		go test -run '^$' -fuzz "^${target}\$" -fuzztime "$time_each" "$package"
	done < <(grep -ohE '^func Fuzz[A-Za-z0-9_]*' "$file" | sed 's/^func //')
done < <(git ls-files -co --exclude-standard '*_test.go' | grep -v '^bench/' | xargs grep -lE '^func Fuzz' || true)
echo "fuzz: $found targets ran"
