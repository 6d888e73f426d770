package policy

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a document.
const (
	// MaxDocument is the largest document, in bytes.
	MaxDocument = 4 << 20
	maxDepth    = 16
	// maxEmptyLines keeps the YAML library quick, which reads empty lines at the head of a block text over and over.
	maxEmptyLines = 200
	maxTokens     = 1_000_000
)

type nodeKind uint8

const (
	kindNull nodeKind = iota
	kindScalar
	kindMapping
	kindSequence
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a single value", "a mapping", "a list"}[k]
}

// node is a part of the document: YAML without anchors, aliases, tags and merge keys, which a policy may not use.
type node struct {
	pos
	kind   nodeKind
	text   string  // of a scalar
	quoted bool    // whether the scalar is a string whatever it looks like
	block  bool    // whether the scalar is a block text (| or >)
	fields []field // of a mapping
	items  []*node // of a sequence
}

type field struct {
	pos
	name  string
	value *node
}

// parseYAML reads one document. It returns nil if the document is not even YAML, or uses what a policy may not use.
func (r *reporter) parseYAML(data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !r.checkBytes(data) {
		return nil
	}
	file, ok := r.parseTokens(string(data))
	if !ok {
		return nil
	}
	var root *node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if root != nil {
			r.report(place(doc.Body), "a second document begins here; a policy is one document")
			return nil
		}
		root = r.convert(doc.Body, 0)
	}
	if root == nil && len(r.problems) == 0 {
		r.report(pos{1, 1}, "the document is empty; a policy begins with version: 1")
	}
	return root
}

func (r *reporter) checkBytes(data []byte) bool {
	if len(data) > MaxDocument {
		r.report(pos{}, "the document has %d bytes; %d are allowed", len(data), MaxDocument)
		return false
	}
	at, empty, text := pos{1, 1}, 0, false
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		if problem := badRune(c, size); problem != "" {
			r.report(at, "%s", problem)
			return false
		}
		data = data[size:]
		if at.column++; c != '\n' {
			text = text || (c != ' ' && c != '\r')
			continue
		}
		if empty++; text {
			empty = 0
		}
		at, text = pos{at.line + 1, 1}, false
		if empty > maxEmptyLines {
			r.report(at, "more than %d empty lines follow each other", maxEmptyLines)
			return false
		}
	}
	return true
}

func badRune(c rune, size int) string {
	switch {
	case c == utf8.RuneError && size == 1:
		return "the document is not UTF-8"
	case c == '\t':
		return "a tab stands here; indent with spaces, and write a tab within a text as \"\\t\""
	case c < ' ' && c != '\n' && c != '\r', c == 0x7f:
		return fmt.Sprintf("a control character (%U) stands here; remove it", c)
	}
	return ""
}

// parseTokens guards the parser, which recurses without a bound, by looking at the tokens first.
func (r *reporter) parseTokens(text string) (file *ast.File, ok bool) {
	// The document may come from elsewhere: a fault of the YAML library must not take the process down.
	defer func() {
		if fault := recover(); fault != nil {
			r.report(pos{}, "the document cannot be read as YAML: %v", fault)
			file, ok = nil, false
		}
	}()
	tokens := lexer.Tokenize(text)
	if !r.checkTokens(tokens) {
		return nil, false
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.reportSyntax(err)
		return nil, false
	}
	return file, true
}

func (r *reporter) checkTokens(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		r.report(pos{}, "the document has %d words and marks; %d are allowed", len(tokens), maxTokens)
		return false
	}
	before := len(r.problems)
	var g guard
	for _, t := range tokens {
		if what := forbidden(t.Type); what != "" {
			r.report(tokenPos(t), "%s may not be used in a policy; write the value out", what)
			continue
		}
		if problem := g.next(t); problem != "" {
			r.report(tokenPos(t), "%s", problem)
			return false
		}
	}
	return len(r.problems) == before
}

func forbidden(t token.Type) string {
	switch t {
	case token.AnchorType:
		return "an anchor (&)"
	case token.AliasType:
		return "an alias (*)"
	case token.TagType:
		return "a tag (!)"
	case token.MergeKeyType:
		return "a merge key (<<)"
	case token.DirectiveType:
		return "a directive (%)"
	case token.MappingKeyType:
		return "an explicit key (?)"
	}
	return ""
}

func (r *reporter) reportSyntax(err error) {
	var located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &located) && located.GetToken() != nil {
		r.report(tokenPos(located.GetToken()), "this is not YAML: %s", located.GetMessage())
		return
	}
	r.report(pos{}, "this is not YAML: %v", err)
}

// convert returns nil where it has reported a problem.
func (r *reporter) convert(n ast.Node, depth int) *node {
	at := place(n)
	if depth > maxDepth {
		r.report(at, "the document is nested more than %d deep", maxDepth)
		return nil
	}
	switch n := n.(type) {
	case *ast.NullNode:
		return &node{pos: at}
	case *ast.StringNode:
		quoted := n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
		return &node{pos: at, kind: kindScalar, text: n.Value, quoted: quoted}
	case *ast.LiteralNode:
		return &node{pos: at, kind: kindScalar, text: n.Value.Value, quoted: true, block: true}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{pos: at, kind: kindScalar, text: n.GetToken().Value}
	case *ast.MappingNode:
		return r.convertMapping(at, n.Values, depth)
	case *ast.MappingValueNode:
		return r.convertMapping(at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out := &node{pos: at, kind: kindSequence}
		for _, v := range n.Values {
			if item := r.convert(v, depth+1); item != nil {
				out.items = append(out.items, item)
			}
		}
		return out
	}
	r.report(at, "%s may not be used in a policy; write the value out", n.Type())
	return nil
}

func (r *reporter) convertMapping(at pos, values []*ast.MappingValueNode, depth int) *node {
	out := &node{pos: at, kind: kindMapping}
	for _, v := range values {
		key, ok := v.Key.(ast.Node)
		if !ok {
			r.report(place(v), "a key is missing")
			continue
		}
		name, ok := keyText(key)
		if !ok {
			r.report(place(key), "a key must be a plain word")
			continue
		}
		if value := r.convert(v.Value, depth+1); value != nil {
			out.fields = append(out.fields, field{pos: place(key), name: name, value: value})
		}
	}
	return out
}

func keyText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// place returns where a node begins: the token of a block mapping is the colon after its first key.
func place(n ast.Node) pos {
	switch n := n.(type) {
	case nil:
		return pos{}
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return place(n.Values[0])
		}
	case *ast.MappingValueNode:
		if key, ok := n.Key.(ast.Node); ok {
			return place(key)
		}
	}
	return tokenPos(n.GetToken())
}

func tokenPos(t *token.Token) pos {
	if t == nil || t.Position == nil {
		return pos{}
	}
	return pos{t.Position.Line, t.Position.Column}
}

// describe names a node in a message.
func (n *node) describe() string {
	if n.kind == kindScalar {
		return fmt.Sprintf("%q", clip(n.text, 60))
	}
	return n.kind.String()
}

// names tells whether a mapping has a field, whatever its value.
func (n *node) names(field string) bool {
	for _, f := range n.fields {
		if f.name == field {
			return true
		}
	}
	return false
}
