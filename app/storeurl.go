package app

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/redisstore"
)

// StoreForms lists how a store can be written, for help and errors.
const StoreForms = "memory, redis://HOST:PORT/DB, redis+sentinel://HOST:PORT,…/MASTER/DB or redis+cluster://HOST:PORT,… " +
	"(rediss for TLS; USER:PASSWORD@ before the hosts)"

// memory is the store in this process.
const memory = "memory"

// StoreURL says where a store is; the zero value is memory. Its String can be shown to anybody: it has no password.
type StoreURL struct {
	// redis is nil for memory.
	redis *redisstore.Config
}

// ParseStoreURL reads a store in one of the StoreForms; "" is memory. Its errors never quote what could be a password.
func ParseStoreURL(text string) (StoreURL, error) {
	if text == "" || text == memory {
		return StoreURL{}, nil
	}
	if scheme, _, found := strings.Cut(text, "://"); !found || !strings.HasPrefix(scheme, "redis") {
		return StoreURL{}, errors.New("store: the text does not begin as any kind of store does; write " + StoreForms)
	}
	cfg, err := redisstore.ParseURL(text)
	if err != nil {
		return StoreURL{}, storeError("store", err)
	}
	return StoreURL{redis: &cfg}, nil
}

// storeError puts an error of the Redis store into the words of a user; wrong configuration is bad usage.
func storeError(what string, err error) error {
	text := strings.TrimPrefix(err.Error(), "redisstore: ")
	if !errors.Is(err, redisstore.ErrConfig) {
		return fmt.Errorf("%s: %s", what, text)
	}
	return usagef("%s: %s", what, strings.TrimSuffix(text, ": "+redisstore.ErrConfig.Error()))
}

// sameRedis tells whether two stores name the same Redis, whatever the database in it: its memory is one.
func (u StoreURL) sameRedis(v StoreURL) bool {
	return u.redis != nil && v.redis != nil && u.redis.Master == v.redis.Master && slices.Equal(u.redis.Addrs, v.redis.Addrs)
}

// String returns the store without its passwords.
func (u StoreURL) String() string {
	c := u.redis
	if c == nil {
		return memory
	}
	var b strings.Builder
	b.WriteString("redis")
	if c.TLS != nil {
		b.WriteString("s")
	}
	switch {
	case c.Cluster:
		b.WriteString("+cluster")
	case c.Master != "":
		b.WriteString("+sentinel")
	}
	b.WriteString("://")
	switch {
	case c.Password != "":
		b.WriteString(url.PathEscape(c.Username) + ":***@")
	case c.Username != "":
		b.WriteString(url.PathEscape(c.Username) + "@")
	}
	b.WriteString(strings.Join(c.Addrs, ","))
	if c.Master != "" {
		b.WriteString("/" + c.Master)
	}
	if c.DB != 0 {
		b.WriteString("/" + strconv.Itoa(c.DB))
	}
	return b.String()
}
