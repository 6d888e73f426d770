// Package sqlorders holds the truth of a sale in SQL: PostgreSQL, MySQL or MariaDB through database/sql, or SQLite in pure Go as the
// default that is built in. It is a flashsale.Orders.
//
// # Isolation
//
// What writes locks the row of its sku first (SELECT … FOR UPDATE) and then reads the rest, so all decisions of a sku stand in one
// order. For that order to be seen, a statement must see what was committed before the lock was given:
//
//   - PostgreSQL: READ COMMITTED, in which every statement sees what was committed before it. A transaction of a higher level would
//     read as of its first statement, from before it had waited for the lock, and fail for it.
//   - MySQL and MariaDB: READ COMMITTED, for the same reason, and because REPEATABLE READ locks gaps between rows, over which inserts of
//     different skus would deadlock.
//   - SQLite: BEGIN IMMEDIATE on the one connection that writes: one transaction at a time.
//
// What reads several tables as of one moment (Snapshot, Books) is a read-only REPEATABLE READ transaction, on SQLite one of the
// connections that read: with a write-ahead log they see one moment and hold nobody up.
//
// # Values
//
// A user is any 1 to 255 bytes, and is kept as bytes: BYTEA, VARBINARY, BLOB. "a", "A" and "a " are three users, and so is one with a
// zero byte or without valid UTF-8. Ids are compared byte by byte. Texts for people (titles, reasons) are UTF-8 without zero bytes,
// which PostgreSQL cannot hold: what is not is replaced by U+FFFD, in every dialect. Times are microseconds since 1970 by the clock of the
// database, read after the lock was given.
package sqlorders
