package saleadmin

import (
	"net/url"
	"strconv"
)

// Page asks for a part of a list: at most Limit entries from after Cursor, which is the Next of the page before. The zero Page is the first one, as long
// as the server makes it.
type Page struct {
	Limit  int
	Cursor string
}

// pageSize is how long a page is by default and at most.
type pageSize struct{ usual, most int }

// showPage is that of skus that are shown, each with a few calls of both stores; auditPage that of skus of each of which all reservations are read.
func showPage() pageSize  { return pageSize{50, 200} }
func auditPage() pageSize { return pageSize{20, 50} }

const noSuchCursor = "it is the next of no page of this list; begin again without it"

func skuPage(values url.Values, size pageSize) (Page, error) {
	limit, err := number(values, "limit", size.usual, size.most)
	return Page{Limit: limit, Cursor: values.Get("cursor")}, err
}

// pageOf is a page of a list in a fixed order whose entries have names, and the cursor of the next one, "" after the last.
func pageOf[T any](list []T, p Page, name func(*T) string) (part []T, next string, err error) {
	from := 0
	if p.Cursor != "" {
		for from < len(list) && name(&list[from]) != p.Cursor {
			from++
		}
		if from == len(list) {
			return nil, "", invalid(FieldError{"cursor", noSuchCursor})
		}
		from++
	}
	end := min(from+p.Limit, len(list))
	if end < len(list) {
		next = name(&list[end-1])
	}
	return list[from:end], next, nil
}

// query writes a page into parameters.
func (p Page) query(values url.Values) url.Values {
	if values == nil {
		values = url.Values{}
	}
	if p.Limit > 0 {
		values.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		values.Set("cursor", p.Cursor)
	}
	return values
}
