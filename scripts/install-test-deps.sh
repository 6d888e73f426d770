#!/bin/sh
# Installs the programs that the tests and the benchmarks start:
#
#   redis-server  single node, Sentinel and Cluster
#   nginx         as an upstream, and as the peer of the gateway in bench/
#   chromium      shows pages as people see them
#   curl, wrk     drive the servers from outside
#   faketime      gives a redis-server a clock that can be set
#   postgres, mariadbd  hold the orders of a sale
#   gcc, libc6-dev  needed by go test -race
#   script        gives a command a terminal
#
# What is there already is left alone. On Debian and its like, as root, the rest comes from the distribution's own
# packages; elsewhere the script says what is missing and ends with 1. The tests start their own servers on their own
# ports, so a service that a package would start by itself is kept from starting.
set -eu

missing=""
want() { # PROGRAM PACKAGE…
	PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "$1" >/dev/null 2>&1 && return
	shift
	missing="$missing $*"
}
# Debian keeps the programs of each version of PostgreSQL in a folder of their own.
want_postgres() {
	for program in /usr/lib/postgresql/*/bin/postgres; do
		[ -x "$program" ] && return
	done
	want postgres postgresql
}
want redis-server redis-server
want nginx nginx-light
want chromium chromium
want curl curl
want wrk wrk
want faketime faketime
want mariadbd mariadb-server
want_postgres
want gcc gcc libc6-dev
want script bsdutils

if [ -z "$missing" ]; then
	echo "install-test-deps: everything is installed"
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	echo "install-test-deps: missing:$missing" >&2
	echo "install-test-deps: install these with your system's package manager, or run this script as root on Debian" >&2
	exit 1
fi

echo "install-test-deps: installing$missing from the packages of this system"
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
# In run level 1 Debian's packages start no service.
# shellcheck disable=SC2086 # the list is meant to be split
RUNLEVEL=1 apt-get -q install -y --no-install-recommends $missing

# systemd does not look at the run level: stop what this installation, and nothing before it, has started.
if [ -d /run/systemd/system ]; then
	for service in redis-server nginx postgresql mariadb; do
		case "$missing" in
		*"$service"*) systemctl disable --now "$service" || true ;;
		esac
	done
fi
echo "install-test-deps: done"
