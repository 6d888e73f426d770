package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/demo/postgresserver"
	"github.com/headgate-io/headgate/demo/redisserver"
)

// ownRedisForm is how the store of a demo that starts its own Redis is written.
const ownRedisForm = "redis-server (or its path: a Redis of the demo's own)"

// ownPostgres is how the database of a demo that starts its own PostgreSQL is written.
const (
	ownPostgres   = "postgres-server"
	demoDBForms   = ownPostgres + " (or its path: a PostgreSQL of the demo's own), " + app.DBForms
	sqliteScheme  = "sqlite:"
	memoryDB      = sqliteScheme + ":memory:"
	memoryDBShown = "SQLite in memory"
)

// demoStorage is where a demo counts, and where it keeps its sale.
type demoStorage struct {
	app.StoreConfig
	own  *ownRedis // nil if the Redis, or the memory, is not the demo's own
	sale demo.SaleStores
	// servers are those of the sale that are the demo's own.
	servers []io.Closer
}

type ownRedis struct {
	*redisserver.Server
	program string
}

// name is what the store is called in place of its URL, which has a password that nobody needs.
func (r *ownRedis) name() string { return filepath.Base(r.program) + " of its own at " + r.Addr() }

// demoStore reads where a demo counts, and starts a Redis if it is to be its own.
func demoStore(ctx context.Context, text string) (*demoStorage, error) {
	var own *ownRedis
	if isProgram(text) {
		server, err := redisserver.Start(ctx, redisserver.Config{Program: text})
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		own = &ownRedis{Server: server, program: text}
		text = own.URL()
	}
	// Two demos on one Redis do not meet.
	cfg, err := storeConfig(text, "demo-"+strings.ToLower(rand.Text()[:10]))
	where := &demoStorage{StoreConfig: cfg, own: own}
	if err != nil {
		_ = where.close() // the reason why there is no demo is another
		return nil, err
	}
	return where, nil
}

// openSale starts what of the sale's stores is to be the demo's own: the database, and, beside a Redis of its own for the limits, another
// one for the stock, since keys of an attacker must not fill its memory.
func (s *demoStorage) openSale(ctx context.Context, db string, stock bool) error {
	if err := s.openDB(ctx, db); err != nil {
		return fmt.Errorf("db: %w", err)
	}
	if !stock || s.own == nil {
		return nil
	}
	server, err := redisserver.Start(ctx, redisserver.Config{Program: s.own.program})
	if err != nil {
		return fmt.Errorf("the Redis of the stock: %w", err)
	}
	s.servers = append(s.servers, server)
	s.sale.StockAddr, s.sale.StockPassword = server.Addr(), server.Password()
	s.sale.StockName = (&ownRedis{Server: server, program: s.own.program}).name()
	return nil
}

func (s *demoStorage) openDB(ctx context.Context, db string) error {
	switch {
	case db == memoryDB:
		s.sale.DB, s.sale.DBName = db, memoryDBShown
		return nil
	case strings.HasPrefix(strings.ToLower(db), sqliteScheme) || strings.Contains(db, "://"):
		s.sale.DB, s.sale.DBName = db, app.ShownDB(db)
		return nil
	case db != ownPostgres && !strings.ContainsRune(db, filepath.Separator):
		return usagef("the database cannot be read; write %s", demoDBForms)
	}
	program := db
	if db == ownPostgres {
		program = ""
	}
	server, err := postgresserver.Start(ctx, postgresserver.Config{Program: program})
	if err != nil {
		return err
	}
	s.servers = append(s.servers, server)
	s.sale.DB, s.sale.DBName = server.URL(), "PostgreSQL of its own at "+server.Addr()
	return nil
}

// isProgram tells the name or the path of a program from the URL of a store.
func isProgram(store string) bool {
	switch {
	case strings.Contains(store, "://"):
		return false
	case strings.ContainsRune(store, filepath.Separator):
		return true
	}
	return store == redisserver.DefaultProgram || store == "valkey-server"
}

// close ends the servers that are the demo's own.
func (s *demoStorage) close() (err error) {
	for _, server := range s.servers {
		err = errors.Join(err, server.Close())
	}
	if s.own != nil {
		err = errors.Join(err, s.own.Close())
	}
	return err
}
