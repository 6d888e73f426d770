package inbox

// Dialect is how a database is spoken to.
type Dialect string

// The dialects.
const (
	PostgreSQL Dialect = "postgresql"
	MySQL      Dialect = "mysql" // and MariaDB
	SQLite     Dialect = "sqlite"
)

// The table, for migrations of the reader's own. They can be run again, and are those of a sale's database as well. The index serves
// Prune.
const (
	SchemaPostgreSQL = `CREATE TABLE IF NOT EXISTS inbox (
    consumer   TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    at         BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (consumer, message_id)
);
CREATE INDEX IF NOT EXISTS inbox_age ON inbox (consumer, at);`

	SchemaMySQL = `CREATE TABLE IF NOT EXISTS inbox (
    consumer   VARBINARY(64) NOT NULL,
    message_id VARBINARY(255) NOT NULL,
    at         BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (consumer, message_id),
    KEY inbox_age (consumer, at)
) ENGINE = InnoDB;`

	SchemaSQLite = `CREATE TABLE IF NOT EXISTS inbox (
    consumer   TEXT NOT NULL,
    message_id TEXT NOT NULL,
    at         INTEGER NOT NULL, -- microseconds since 1970
    PRIMARY KEY (consumer, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS inbox_age ON inbox (consumer, at);`
)

// statements are those of one dialect. A claim that meets the row of a transaction under way waits for its end.
type statements struct{ schema, claim, prune string }

func (d Dialect) statements() (statements, bool) {
	switch d {
	case PostgreSQL:
		return statements{
			schema: SchemaPostgreSQL,
			claim:  `INSERT INTO inbox (consumer, message_id, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			prune: `DELETE FROM inbox WHERE (consumer, message_id) IN
				(SELECT consumer, message_id FROM inbox WHERE consumer = $1 AND at < $2 ORDER BY at LIMIT $3)`,
		}, true
	case MySQL:
		return statements{
			schema: SchemaMySQL,
			claim:  `INSERT IGNORE INTO inbox (consumer, message_id, at) VALUES (?, ?, ?)`,
			prune:  `DELETE FROM inbox WHERE consumer = ? AND at < ? ORDER BY at LIMIT ?`,
		}, true
	case SQLite:
		return statements{
			schema: SchemaSQLite,
			claim:  `INSERT INTO inbox (consumer, message_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			prune: `DELETE FROM inbox WHERE (consumer, message_id) IN
				(SELECT consumer, message_id FROM inbox WHERE consumer = ? AND at < ? ORDER BY at LIMIT ?)`,
		}, true
	}
	return statements{}, false
}
