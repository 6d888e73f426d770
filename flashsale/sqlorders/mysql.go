package sqlorders

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

func connectMySQL(cfg Config) (*Orders, error) {
	u, err := parseURL(&cfg, "socket")
	if err != nil {
		return nil, err
	}
	config, err := mysqlConfig(u)
	if err != nil {
		return nil, err
	}
	config.Timeout, config.Logger = cfg.Timeout, quiet{}
	config.InterpolateParams = true // one round trip for a statement and not two
	config.ClientFoundRows = true   // an UPDATE counts the rows that it found, as elsewhere
	// The server must not hold locks for a client that has given up; InnoDB counts whole seconds.
	config.Params = map[string]string{
		"innodb_lock_wait_timeout": strconv.FormatInt(max(1, int64(cfg.Timeout.Seconds())), 10),
		"sql_mode":                 "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
		"time_zone":                "'+00:00'",
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, invalidf("sqlorders: the tls of Config.URL is %.40q; give true, skip-verify, preferred or false", config.TLSConfig)
	}
	return ofServer(cfg, mariadb(u.where()), sql.OpenDB(prepared{connector, []string{
		// Set once for each connection, where BeginTx would for each transaction. The variable of that name is another one in MySQL
		// and in MariaDB; the statement is the same.
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		fmt.Sprintf(standingMySQL, wholeSeconds(cfg.Timeout)),
	}})), nil
}

// mysqlConfig is what a URL says.
func mysqlConfig(u *serverURL) (*mysql.Config, error) {
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.DBName = u.Path[1:]
	switch {
	case u.socket:
		config.Net, config.Addr = "unix", u.hosts
		u.parameters.Del("socket")
	case strings.Contains(u.hosts, ","):
		return nil, invalidf("sqlorders: Config.URL names several hosts, and that of MySQL names one; give the address that leads to the primary")
	default:
		port := u.Port()
		if port == "" {
			port = "3306"
		}
		config.Net, config.Addr = "tcp", net.JoinHostPort(u.Hostname(), port)
	}
	for name, values := range u.parameters {
		if name != "tls" || len(values) != 1 {
			return nil, invalidf("sqlorders: Config.URL has the parameter %.40q; MySQL's only one is tls, once: true, skip-verify, preferred or false", name)
		}
		config.TLSConfig = values[0]
	}
	return config, nil
}

// standingMySQL has the server end a transaction whose client stands still, and cannot give up: it would hold the row of a sku for as
// long as that. The variable of our own keeps the statement whole where neither is set. MySQL knows no such bound for a transaction;
// that for a connection ends idle ones of the pool along with it, which the driver sees before it uses one.
const standingMySQL = "SET /*!80000 SESSION wait_timeout = %[1]d, */ /*M!100300 SESSION idle_transaction_timeout = %[1]d, */ @headgate_standing = %[1]d"

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// prepared runs statements on each new connection.
type prepared struct {
	driver.Connector
	statements []string
}

// Connect connects and prepares.
func (c prepared) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (c prepared) prepare(ctx context.Context, conn driver.Conn) error {
	e, ok := conn.(driver.ExecerContext)
	if !ok {
		return errors.New("the driver runs no statements")
	}
	for _, statement := range c.statements {
		if _, err := e.ExecContext(ctx, statement, nil); err != nil {
			return err
		}
	}
	return nil
}

// quiet keeps the driver from printing: what it would say comes back as errors.
type quiet struct{}

func (quiet) Print(...any) {}

func mariadb(where string) *dialect {
	return &dialect{
		name: "MySQL", where: where, migrations: "mysql",
		// SYSDATE is the time at which it is evaluated, here after the lock; NOW that at which the statement began.
		clock:       "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)",
		lock:        "%s FOR UPDATE",
		clockInLock: true,
		excluded:    "VALUES(%s)",
		onDuplicate: true,
		standing:    standingMySQL,
		integer:     "SIGNED",
		maxParams:   16384, // far below 65535, and what fits into a packet
		classify:    classifyMySQL,
		durable: []durableSetting{
			{name: "innodb_flush_log_at_trx_commit", query: "SELECT @@innodb_flush_log_at_trx_commit", good: []string{"1", "3"}},
			{name: "sync_binlog", query: "SELECT CASE WHEN @@log_bin = 0 THEN 1 ELSE @@sync_binlog END", good: []string{"1"}},
			{name: "innodb_doublewrite", query: "SELECT @@innodb_doublewrite", good: []string{"on", "1", "detect_and_recover"}},
			{name: "innodb_flush_method", query: "SELECT @@innodb_flush_method", bad: []string{"nosync", "littlesync"}},
		},
	}
}

var mysqlKey = regexp.MustCompile(`for key '([^']*)'$|CONSTRAINT .([\w.]+). failed|constraint '([^']*)' is violated`)

// classifyMySQL goes by the numbers of MySQL and MariaDB.
func classifyMySQL(err error) failure {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		if errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
			return failure{kind: failLost}
		}
		if errors.Is(err, mysql.ErrNoTLS) {
			return failure{kind: failRefused, hint: "it has no TLS, and ?tls asks for it: set it up there, or give tls=false"}
		}
		if errors.Is(err, mysql.ErrPktSync) || errors.Is(err, mysql.ErrMalformPkt) || errors.Is(err, mysql.ErrOldProtocol) {
			return failure{kind: failRefused, hint: "what answers there is no MySQL: check host and port"}
		}
		return failure{kind: lostIfNetwork(err), hint: connectHint(err)}
	}
	switch e.Number {
	case 1213, 1205, 1020: // deadlock, lock wait, changed since it was read
		return failure{kind: failRetry}
	case 1062, 1586:
		return failure{kind: failDuplicate, what: mysqlConstraint(e.Message)}
	case 3819, 4025, 1048, 1264, 1406, 1451, 1452, 1366: // checks, NULL, range, length, foreign keys, a value of another kind
		return failure{kind: failConstraint, what: mysqlConstraint(e.Message)}
	case 1290, 1836, 1792:
		return failure{kind: failLost, hint: "it takes no writes: it is a replica, or read-only"}
	case 1040, 1203:
		return failure{kind: failLost, hint: noConnections}
	case 1665:
		return failure{kind: failRefused, hint: "its binlog_format is STATEMENT, by which READ COMMITTED cannot be replicated; set it to ROW or MIXED"}
	case 1053, 1317, 1969, 3024, 1927, 2006, 2013, 4031, 1021, 1114, 1028, 1041: // connections, a stop, time-outs, disk, memory
		return failure{kind: failLost}
	case 1045, 1698:
		return failure{kind: failRefused, hint: "it does not let this user in: check user and password"}
	case 1049:
		return failure{kind: failRefused, hint: "there is no such database; create it"}
	case 1044, 1142, 1143, 1227, 1370:
		return failure{kind: failRefused, hint: "the user lacks rights on the database: grant SELECT, INSERT, UPDATE, DELETE, and to set it up CREATE, ALTER, INDEX"}
	}
	return failure{}
}

// mysqlConstraint reads the name of a constraint out of a message, which else quotes values.
func mysqlConstraint(message string) string {
	if m := mysqlKey.FindStringSubmatch(message); m != nil {
		return m[1] + m[2] + m[3]
	}
	return ""
}
