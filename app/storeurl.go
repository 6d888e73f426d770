package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// StoreKind is what a store runs on.
type StoreKind string

// The kinds of stores.
const (
	StoreMemory   StoreKind = "memory"
	StoreRedis    StoreKind = "redis"
	StoreSentinel StoreKind = "sentinel"
	StoreCluster  StoreKind = "cluster"
)

// StoreForms lists how a store can be written, for help and errors.
const StoreForms = "memory, redis://HOST:PORT/DB, redis+sentinel://HOST:PORT,…/MASTER/DB or redis+cluster://HOST:PORT,… " +
	"(rediss://, rediss+sentinel:// and rediss+cluster:// with TLS), with USER:PASSWORD@ before the hosts where Redis asks for them"

// StoreURL says where a store is. Its String can be shown to anybody: it has no password.
type StoreURL struct {
	Kind StoreKind
	TLS  bool
	// CA is a file with the certificates that sign the server's, "" for those of the system.
	CA                 string
	Username, password string
	// Hosts have the form host:port.
	Hosts []string
	// Master is the name that Sentinel knows the primary by.
	Master string
	DB     int
}

// Password returns the password. It never belongs in a log or an error.
func (u StoreURL) Password() string { return u.password }

// storeScheme returns what a scheme says of a store.
func storeScheme(name string) (StoreURL, bool) {
	plain, encrypted := strings.CutPrefix(name, "rediss")
	if encrypted {
		name = "redis" + plain
	}
	u := StoreURL{TLS: encrypted}
	switch name {
	case "redis":
		u.Kind = StoreRedis
	case "redis+sentinel":
		u.Kind = StoreSentinel
	case "redis+cluster":
		u.Kind = StoreCluster
	default:
		return StoreURL{}, false
	}
	return u, true
}

func (u StoreURL) scheme() string {
	name := "redis"
	if u.TLS {
		name = "rediss"
	}
	if u.Kind != StoreRedis {
		name += "+" + string(u.Kind)
	}
	return name
}

// ParseStoreURL reads a store in one of the StoreForms. Its errors never quote what could be a password.
func ParseStoreURL(text string) (StoreURL, error) {
	if text == "" || text == string(StoreMemory) {
		return StoreURL{Kind: StoreMemory}, nil
	}
	scheme, rest, found := strings.Cut(text, "://")
	u, known := storeScheme(scheme)
	if !found || !known {
		return StoreURL{}, fmt.Errorf("store: %s is not a known kind of store; write %s", quoteScheme(scheme, found), StoreForms)
	}
	// A password may hold an @, a / or a ? that should have been escaped: what stands before the last @ is never shown.
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if err := u.readUser(rest[:at]); err != nil {
			return StoreURL{}, err
		}
		rest = rest[at+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if err := u.readHosts(authority); err != nil {
		return StoreURL{}, err
	}
	if err := u.readPath(path); err != nil {
		return StoreURL{}, err
	}
	return u, u.readQuery(query)
}

func quoteScheme(scheme string, found bool) string {
	if found && len(scheme) <= 32 && !strings.ContainsAny(scheme, "@/") {
		return strconv.Quote(scheme + "://")
	}
	return "the text given"
}

func (u *StoreURL) readUser(text string) error {
	name, password, _ := strings.Cut(text, ":")
	var err1, err2 error
	u.Username, err1 = url.PathUnescape(name)
	u.password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return errors.New("store: the user or password has a % that begins no escape; write a literal % as %25")
	}
	return nil
}

func (u *StoreURL) readHosts(text string) error {
	port := "6379"
	if u.Kind == StoreSentinel {
		port = "26379"
	}
	for host := range strings.SplitSeq(text, ",") {
		full, err := hostPort(strings.TrimSpace(host), port)
		if err != nil {
			return err
		}
		u.Hosts = append(u.Hosts, full)
	}
	if u.Kind == StoreRedis && len(u.Hosts) > 1 {
		return errors.New("store: redis:// takes one host; write redis+cluster:// or redis+sentinel:// for several")
	}
	return nil
}

// hostPort completes a host that has no port.
func hostPort(text, port string) (string, error) {
	if text == "" {
		return "", errors.New("store: a host is missing; write HOST:PORT")
	}
	if bare := strings.Trim(text, "[]"); net.ParseIP(bare) != nil {
		return net.JoinHostPort(bare, port), nil
	}
	if !strings.Contains(text, ":") {
		text = net.JoinHostPort(text, port)
	}
	host, p, err := net.SplitHostPort(text)
	if n, perr := strconv.Atoi(p); err != nil || host == "" || perr != nil || n < 1 || n > 65535 {
		// What stands after the colon may be a password whose @HOST was forgotten.
		name, _, _ := strings.Cut(text, ":")
		return "", fmt.Errorf("store: the port after the host %q is no number from 1 to 65535", name)
	}
	return text, nil
}

func (u *StoreURL) readPath(path string) error {
	if u.Kind == StoreSentinel {
		u.Master, path, _ = strings.Cut(path, "/")
		if u.Master == "" {
			return errors.New("store: the name of the master is missing; write redis+sentinel://HOST:PORT,…/MASTER")
		}
	}
	if path == "" {
		return nil
	}
	db, err := strconv.Atoi(path)
	switch {
	case err != nil || db < 0 || db > 1_000_000:
		return fmt.Errorf("store: %q is no number of a database", path)
	case u.Kind == StoreCluster && db != 0:
		return errors.New("store: a Redis Cluster has database 0 only; leave the number out")
	}
	u.DB = db
	return nil
}

func (u *StoreURL) readQuery(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("store: what follows the ? cannot be read; write ?ca=FILE")
	}
	for name, v := range values {
		switch {
		case name != "ca" || len(v) != 1:
			return fmt.Errorf("store: the option %q is unknown or given twice; there is ca=FILE", name)
		case !u.TLS:
			return errors.New("store: ca= is for rediss:// only")
		}
		u.CA = v[0]
	}
	return nil
}

// String returns the store without its password.
func (u StoreURL) String() string {
	if u.Kind == StoreMemory || u.Kind == "" {
		return string(StoreMemory)
	}
	var b strings.Builder
	b.WriteString(u.scheme() + "://")
	switch {
	case u.password != "":
		b.WriteString(url.PathEscape(u.Username) + ":***@")
	case u.Username != "":
		b.WriteString(url.PathEscape(u.Username) + "@")
	}
	b.WriteString(strings.Join(u.Hosts, ","))
	if u.Master != "" {
		b.WriteString("/" + u.Master)
	}
	if u.DB != 0 {
		b.WriteString("/" + strconv.Itoa(u.DB))
	}
	if u.CA != "" {
		b.WriteString("?ca=" + url.QueryEscape(u.CA))
	}
	return b.String()
}
