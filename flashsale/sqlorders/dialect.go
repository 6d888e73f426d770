package sqlorders

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dialect is all that the databases differ in.
type dialect struct {
	name string
	// where names the database in messages: host, port and name, or the file. Never a password.
	where string
	// migrations is the folder of its schema.
	migrations string
	// clock is an expression for the time in microseconds; "" where the clock is that of this process.
	clock string
	// numbered: placeholders are $1, $2, … and not ?.
	numbered bool
	// arrays: a list of values is one parameter, whatever its length, so that statements stay the same and are planned once.
	arrays bool
	// returning: an INSERT can return columns of what it has inserted.
	returning bool
	// lock turns a SELECT into one that locks; clockInLock tells that the clock is selected beside the row, else it is %s[2].
	lock        string
	clockInLock bool
	// excluded is the value that an upsert wanted to insert into a column.
	excluded string
	// onDuplicate: ON DUPLICATE KEY UPDATE and not ON CONFLICT.
	onDuplicate bool
	// unhurried are statements that lift the server's bounds for one transaction, in it; standing, with a %d for seconds, is one that
	// says for a connection, outside of its transactions, how long they may stand still.
	unhurried []string
	standing  string
	// integer is the type that a sum is cast to, so that it can be scanned.
	integer string
	// maxParams bounds the parameters of a statement.
	maxParams int
	classify  func(error) failure
	// durable are the settings on which it depends that no commit is lost.
	durable []durableSetting
}

// bind writes the placeholders of a statement as this dialect has them. Statements are written with ?, and have none in texts.
func (d *dialect) bind(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	b.Grow(len(query) + 16)
	n := 0
	for {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}

// locking turns "SELECT columns FROM one table WHERE …" into a statement that locks the rows and returns the clock before the columns,
// read when the lock was given.
func (d *dialect) locking(query string) string {
	switch {
	case d.clock == "":
		return query
	case d.clockInLock:
		return fmt.Sprintf(d.lock, "SELECT "+d.clock+","+strings.TrimPrefix(query, "SELECT"))
	}
	return fmt.Sprintf(d.lock, query, d.clock)
}

// onConflict is the end of an INSERT that meets a row with the same key. Without set it does nothing; in set, NEW(column) is what
// was to be inserted, and table.column what is there: "quantity = buyer.quantity + NEW(quantity)".
func (d *dialect) onConflict(key string, set ...string) string {
	if len(set) == 0 {
		if d.onDuplicate { // IGNORE would also take values that do not fit
			first, _, _ := strings.Cut(key, ",")
			return " ON DUPLICATE KEY UPDATE " + first + " = " + first
		}
		return " ON CONFLICT (" + key + ") DO NOTHING"
	}
	list := strings.Join(set, ", ")
	for {
		before, after, found := strings.Cut(list, "NEW(")
		if !found {
			break
		}
		column, rest, _ := strings.Cut(after, ")")
		list = before + fmt.Sprintf(d.excluded, column) + rest
	}
	if d.onDuplicate {
		return " ON DUPLICATE KEY UPDATE " + list
	}
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + list
}

// sum is a sum as an integer, 0 of no rows. PostgreSQL and MySQL add integers up as decimals.
func (d *dialect) sum(of string) string {
	return "CAST(COALESCE(SUM(" + of + "), 0) AS " + d.integer + ")"
}

// value is a type of a column.
type value interface{ int64 | string | []byte }

// in is "column is one of the values" and its arguments: one array, or a placeholder for each. The values must be fewer than
// maxParams, and at least one.
func in[T value](d *dialect, column string, values []T) (string, []any) {
	if d.arrays {
		return column + " = ANY(?)", []any{values}
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return column + " IN (?" + strings.Repeat(",?", len(values)-1) + ")", args
}

// micros is a time as it is stored, 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// timeAt is a stored time, in UTC.
func timeAt(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// text is what every dialect can hold of a text for people: UTF-8 without zero bytes.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
