package sqlorders

import (
	"slices"
	"strings"
)

// kind is the kind of a column, as an array of it needs.
type kind uint8

const (
	kindText kind = iota
	kindInt
	kindBytes
)

// arrayTypes are the types of PostgreSQL's arrays by kind.
var arrayTypes = [...]string{"TEXT[]", "BIGINT[]", "BYTEA[]"}

// columns of a table, with their kinds, for inserting many rows at once.
type columns struct {
	table string
	names []string
	kinds []kind
}

// columnsOf describes columns: "name" is a text, "name int" a number, "name bytes" bytes.
func columnsOf(table string, names ...string) columns {
	c := columns{table: table}
	for _, n := range names {
		name, of, _ := strings.Cut(n, " ")
		c.names = append(c.names, name)
		c.kinds = append(c.kinds, kind(max(0, slices.Index([]string{"", "int", "bytes"}, of))))
	}
	return c
}

// insert inserts rows, each with a value for every column: a string, an int64, []byte or nil. End is what follows: an onConflict, or
// nothing. It takes as many statements as the bound on parameters asks for.
func (t *tx) insert(c columns, end string, rows [][]any) error {
	for chunk := range slices.Chunk(rows, t.d.rowsAtOnce(len(c.names))) {
		query, args := t.d.insertion(c, chunk)
		if _, err := t.exec(query+end, args...); err != nil {
			return err
		}
	}
	return nil
}

// insertReturning is insert on a dialect that returns, with RETURNING at the end; each is called for every row, in no order.
func (t *tx) insertReturning(c columns, end string, rows [][]any, each func(scan func(dest ...any) error) error) error {
	for chunk := range slices.Chunk(rows, t.d.rowsAtOnce(len(c.names))) {
		query, args := t.d.insertion(c, chunk)
		if err := t.query(query+end, args, each); err != nil {
			return err
		}
	}
	return nil
}

// maxRows bounds the rows of a statement.
const maxRows = 1000

func (d *dialect) rowsAtOnce(columns int) int {
	if d.arrays {
		return maxRows
	}
	return min(maxRows, d.maxParams/columns)
}

func (d *dialect) insertion(c columns, rows [][]any) (string, []any) {
	start := "INSERT INTO " + c.table + " (" + strings.Join(c.names, ", ") + ") "
	if d.arrays {
		return start + "SELECT * FROM unnest(" + c.arrayParams() + ")", c.arrays(rows)
	}
	row := "(?" + strings.Repeat(",?", len(c.names)-1) + ")"
	args := make([]any, 0, len(rows)*len(c.names))
	for _, r := range rows {
		args = append(args, r...)
	}
	return start + "VALUES " + row + strings.Repeat(","+row, len(rows)-1), args
}

func (c *columns) arrayParams() string {
	params := make([]string, len(c.kinds))
	for i, k := range c.kinds {
		params[i] = "CAST(? AS " + arrayTypes[k] + ")"
	}
	return strings.Join(params, ", ")
}

// arrays turns rows into one array for each column.
func (c *columns) arrays(rows [][]any) []any {
	args := make([]any, len(c.names))
	for i, k := range c.kinds {
		switch k {
		case kindText:
			args[i] = column[string](rows, i)
		case kindInt:
			args[i] = column[int64](rows, i)
		case kindBytes:
			args[i] = bytesColumn(rows, i)
		}
	}
	return args
}

// column collects a column: values, which pgx writes without reflection, or pointers, with nil for NULL, where there is one.
func column[T any](rows [][]any, i int) any {
	all := make([]T, len(rows))
	for r, row := range rows {
		v, ok := row[i].(T)
		if !ok {
			return nullable[T](rows, i)
		}
		all[r] = v
	}
	return all
}

func nullable[T any](rows [][]any, i int) []*T {
	all := make([]*T, len(rows))
	for r, row := range rows {
		if v, ok := row[i].(T); ok {
			all[r] = &v
		}
	}
	return all
}

func bytesColumn(rows [][]any, i int) [][]byte {
	all := make([][]byte, len(rows))
	for r, row := range rows {
		all[r], _ = row[i].([]byte)
	}
	return all
}
