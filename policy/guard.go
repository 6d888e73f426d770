package policy

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

const (
	maxEntries = 1000 // of a block mapping
	maxEmpty   = 1000 // values that are not there, in the whole document
	maxRare    = 1000 // block texts, and pairs in brackets without braces, in the whole document
)

// guard keeps what the YAML parser does with a document in proportion to its size: the parser recurses for each level, and
// takes a time that grows with the square of the documents, of the entries of a block mapping, and of the missing values.
type guard struct {
	line, opened int // marks that open a level in this line
	headers      int
	empty, rare  int
	flow         []flowLevel    // open brackets
	mappings     []blockMapping // open block mappings, each further to the right than the one before
	waiting      waiting
}

// flowLevel is an open bracket, and what came in it since the last comma.
type flowLevel struct{ mapping, colon, content bool }

// blockMapping is a mapping that a key further to the left would end.
type blockMapping struct{ column, entries int }

// waiting is a key or a dash whose value has not come yet.
type waiting struct {
	column int // 0: nothing waits
	line   int
	key    bool
}

// next returns what is wrong with a token, "" if nothing is.
func (g *guard) next(t *token.Token) string {
	if t.Type == token.CommentType {
		return ""
	}
	if t.Position.Line != g.line {
		g.line, g.opened = t.Position.Line, 0
	}
	if g.lacking(t) {
		g.empty++
	}
	if problem := g.take(t); problem != "" {
		return problem
	}
	switch {
	case len(g.flow) > maxDepth || g.opened > maxDepth:
		return fmt.Sprintf("the document is nested more than %d deep", maxDepth)
	case g.empty > maxEmpty:
		return fmt.Sprintf("more than %d values are missing", maxEmpty)
	case g.rare > maxRare:
		return fmt.Sprintf("more than %d block texts (| or >), or pairs in a list, stand in the document", maxRare)
	}
	return ""
}

// lacking tells whether the key or the dash before has no value, since the token stands too far to the left to be it.
func (g *guard) lacking(t *token.Token) bool {
	w := g.waiting
	g.waiting = waiting{}
	if w.column == 0 || t.Position.Line == w.line || t.Position.Column > w.column {
		return false
	}
	return t.Position.Column < w.column || !w.key || t.Type != token.SequenceEntryType
}

func (g *guard) take(t *token.Token) string {
	switch t.Type {
	case token.DocumentHeaderType:
		if g.headers++; g.headers > 1 {
			return "a second document begins here; a policy is one document"
		}
	case token.SequenceStartType, token.MappingStartType:
		g.content()
		g.flow = append(g.flow, flowLevel{mapping: t.Type == token.MappingStartType})
	case token.SequenceEndType, token.MappingEndType, token.CollectEntryType:
		return g.endEntry(t)
	case token.SequenceEntryType:
		g.opened++
		g.close(t.Position.Column)
		g.waiting = waiting{t.Position.Column, t.Position.Line, false}
	case token.MappingValueType:
		return g.colon(t)
	case token.LiteralType, token.FoldedType:
		g.rare++
	default:
		g.content()
	}
	return ""
}

func (g *guard) content() {
	if n := len(g.flow); n > 0 {
		g.flow[n-1].content = true
	}
}

// endEntry ends an entry in brackets, at a comma or at the closing bracket.
func (g *guard) endEntry(t *token.Token) string {
	n := len(g.flow)
	if n == 0 {
		return "" // a stray bracket: the parser says so
	}
	level := g.flow[n-1]
	if t.Type == token.CollectEntryType {
		g.flow[n-1] = flowLevel{mapping: level.mapping}
	} else {
		g.flow = g.flow[:n-1]
	}
	switch {
	case level.mapping && level.content && !level.colon:
		return "the key before has no value; write key: value"
	case level.colon && t.Prev != nil && t.Prev.Type == token.MappingValueType:
		g.empty++
	}
	return ""
}

// colon is the mark after a key.
func (g *guard) colon(t *token.Token) string {
	if n := len(g.flow); n > 0 {
		if g.flow[n-1].colon = true; !g.flow[n-1].mapping {
			g.rare++
		}
		return ""
	}
	g.opened++
	key := t.Prev
	if key == nil || key.Position.Line != t.Position.Line || !isWord(key.Type) {
		return "a key must be a plain word"
	}
	column := key.Position.Column
	g.waiting = waiting{column, t.Position.Line, true}
	g.close(column)
	n := len(g.mappings)
	if n == 0 || g.mappings[n-1].column < column {
		g.mappings = append(g.mappings, blockMapping{column: column})
		n++
	}
	if g.mappings[n-1].entries++; g.mappings[n-1].entries > maxEntries {
		return fmt.Sprintf("the mapping has more than %d entries", maxEntries)
	}
	return ""
}

// close ends the mappings to the right of a column.
func (g *guard) close(column int) {
	for n := len(g.mappings); n > 0 && g.mappings[n-1].column > column; n-- {
		g.mappings = g.mappings[:n-1]
	}
}

func isWord(t token.Type) bool {
	switch t {
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.IntegerType, token.FloatType, token.BoolType,
		token.NullType, token.MergeKeyType:
		return true
	}
	return false
}
