package app

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// DBForms lists how a database of a sale can be written, for help and errors.
const DBForms = "sqlite:FILE, postgres://USER:PASSWORD@HOST:PORT/DATABASE or mysql://USER:PASSWORD@HOST:PORT/DATABASE"

// saleStores are what a sale keeps its state in, as far as they are open.
type saleStores struct {
	orders flashsale.Orders
	stock  engine.Stock
	relay  flashsale.Relay
}

func (s *saleStores) close() (err error) {
	if s.relay != nil {
		err = s.relay.Close()
	}
	if s.stock != nil {
		err = errors.Join(err, s.stock.Close())
	}
	if s.orders != nil {
		err = errors.Join(err, s.orders.Close())
	}
	*s = saleStores{}
	return err
}

func (c *SaleConfig) scheme() string {
	scheme, _, _ := strings.Cut(c.DB, ":")
	return strings.ToLower(scheme)
}

func (c *SaleConfig) sqlite() bool { return c.scheme() == "sqlite" }

// sqliteFile is the file of SQLite, "" if the database is in memory.
func (c *SaleConfig) sqliteFile() string {
	_, file, _ := strings.Cut(c.DB, ":")
	if file == ":memory:" {
		return ""
	}
	return strings.TrimPrefix(file, "//")
}

// checkStores refuses what cannot go together.
func (c *SaleConfig) checkStores() error {
	switch c.scheme() {
	case "":
		return usagef("sale: there is no database for its orders; write --db with one such as %s", DBForms)
	case "sqlite", "postgres", "postgresql", "mysql", "mariadb":
	default:
		return usagef("sale: the database's text does not begin as any kind of database does; write %s", DBForms)
	}
	if !c.sqlite() && c.Store.redis == nil {
		return usagef("sale: the stock is in the memory of this process, and %s can be that of several, each with a stock of its own; "+
			"write --sale-store redis://HOST:PORT, or --db sqlite:FILE for one process", c.shownDB())
	}
	return nil
}

func (c *SaleConfig) shownDB() string { return ShownDB(c.DB) }

// ShownDB is the database of a sale without its password.
func ShownDB(db string) string { return sqlorders.Shown(db) }

// openStores opens those that are not open yet: the database first, since its lock keeps a second process from a file.
func (s *sale) openStores(ctx context.Context) (err error) {
	if s.stores.orders == nil {
		orders, err := sqlorders.Open(ctx, sqlorders.Config{URL: s.cfg.DB, Logger: s.log, Retried: s.noteRetry})
		if err != nil {
			return storeOf("the database "+s.cfg.shownDB(), "sqlorders: ", "Config.URL", "--db", err)
		}
		s.stores.orders = orders
	}
	if s.stores.stock == nil {
		if s.stores.stock, err = s.openStock(ctx); err != nil {
			s.stores.stock = nil
			return storeOf("the stock in "+s.cfg.Store.String(), "redisstock: ", "Config.", "", err)
		}
	}
	if s.stores.relay == nil && s.cfg.Relay != "" {
		s.stores.relay, err = s.openRelay(ctx)
	}
	return err
}

func (s *sale) openStock(ctx context.Context) (engine.Stock, error) {
	if s.cfg.Store.redis == nil {
		return memstock.New(memstock.Config{}), nil
	}
	c := s.cfg.Store.redis
	return redisstock.New(ctx, redisstock.Config{
		Addrs: c.Addrs, Master: c.Master, Cluster: c.Cluster, Username: c.Username, Password: c.Password, DB: c.DB, TLS: c.TLS,
		SentinelUsername: cmp.Or(s.cfg.SentinelUsername, c.SentinelUsername),
		SentinelPassword: cmp.Or(s.cfg.SentinelPassword, c.SentinelPassword),
		Namespace:        cmp.Or(s.cfg.Namespace, c.Namespace, DefaultNamespace),
	})
}

// noteRetry passes on that the database has repeated a transaction.
func (s *sale) noteRetry(method string, tries int, why error) {
	if e := s.retried.Load(); e != nil {
		e.Retried(method, tries, why)
	}
}

// storeOf puts an error of a store into the words of a user; its code stays.
func storeOf(what, prefix, field, flag string, err error) error {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), prefix), field, flag)
	return &flashsale.Error{Code: flashsale.CodeOf(err), Message: "sale: " + what + ": " + text}
}

// attrs say in a line of the log what the sale is made of.
func (s *sale) attrs() []any {
	attrs := []any{"db", s.cfg.shownDB(), "stock", s.cfg.Store.String(), "pay", s.cfg.shownPay(), "user", s.cfg.User}
	if s.cfg.Device != "" {
		attrs = append(attrs, "device", s.cfg.Device)
	}
	if s.cfg.Relay != "" {
		attrs = append(attrs, "relay", shownRelay(s.cfg.Relay))
	}
	return attrs
}
