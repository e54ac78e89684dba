package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits on what is read. They are far above any configuration and bound the work a hostile file
// can cause.
const (
	maxBytes   = 1 << 20
	maxDepth   = 64
	maxNodes   = 100_000
	maxColumns = 2_048 // block nesting is bounded by the column at which structure starts
	maxMarkers = 1_000 // anchors, aliases and tags
	maxKeys    = 8_000 // of one mapping: the parser's time grows with their square
)

// Document is a parsed YAML file whose top is a mapping. It is edited by Set and SetValue and is
// not safe for concurrent use while it is edited.
type Document struct {
	root  *node
	edits int
	notes *notes
}

// Open reads and parses the file at path.
func Open(path string) (*Document, error) {
	text, err := os.ReadFile(path)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err // The path is said once.
	}
	if err != nil {
		return nil, fmt.Errorf("open config %s: %w", path, err)
	}
	return Parse(path, text)
}

// Parse parses text; name is the file name used in errors. An empty text is an empty mapping. The
// error is an [Errors].
func Parse(name string, text []byte) (*Document, error) {
	root, errs := parse(name, text)
	if len(errs) > 0 {
		return nil, errs
	}
	if root == nil || root.kind == kindNull {
		root = &node{kind: kindMapping, at: position{src: &source{name: name}}}
	}
	if root.kind != kindMapping {
		return nil, Errors{newError(root.at, "", "expected a mapping at the top of the file, found %s", root.kind)}
	}
	return &Document{root: root, notes: &notes{}}, nil
}

// parse returns nil without errors for a text that holds no value.
func parse(name string, text []byte) (root *node, errs Errors) {
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	src := &source{name: name}
	whole := position{src: src}
	switch {
	case len(text) > maxBytes:
		return nil, Errors{newError(whole, "", "file has %d bytes; at most %d are read", len(text), maxBytes)}
	case !utf8.Valid(text):
		return nil, Errors{newError(whole, "", "file is not valid UTF-8")}
	}
	normal := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(text))
	src.lines = strings.Split(normal, "\n")

	// The parser is foreign code fed with foreign bytes; a panic there is a syntax error to the
	// caller.
	defer func() {
		if r := recover(); r != nil {
			root, errs = nil, Errors{newError(whole, "", "syntax: the YAML parser gave up: %v", r)}
		}
	}()
	tokens := lexer.Tokenize(normal)
	if err := checkTokens(src, tokens); err != nil {
		return nil, Errors{err}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Errors{syntaxError(src, err)}
	}
	c := &converter{src: src, anchors: map[string]*node{}}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			c.fail(c.position(doc.Body), "", "a second YAML document; a configuration is one document")
			break
		}
		root = c.convert(doc.Body, "", 0)
	}
	return root, c.errs
}

// checkTokens bounds the nesting before the parser, which is recursive, sees the tokens: a
// goroutine's stack cannot be recovered once it has overflowed.
func checkTokens(src *source, tokens token.Tokens) *Error {
	flow, markers := 0, 0
	var keys keyCounts
	for _, tk := range tokens {
		at := tokenPosition(src, tk)
		if keys.add(tk, at); keys.most > maxKeys {
			return newError(at, "", "a mapping of more than %d keys", maxKeys)
		}
		switch tk.Type {
		case token.InvalidType:
			return newError(at, "", "syntax: %s", tk.Error)
		case token.SequenceStartType, token.MappingStartType:
			if flow++; flow > maxDepth {
				return newError(at, "", "nested deeper than %d levels", maxDepth)
			}
		case token.SequenceEndType, token.MappingEndType:
			flow = max(flow-1, 0)
		case token.SequenceEntryType, token.MappingKeyType:
			if flow == 0 && at.column > maxColumns {
				return newError(at, "", "nested deeper than %d columns", maxColumns)
			}
		case token.MappingValueType:
			// The colon stands behind a key of any length, so it is the indentation of its line
			// that counts.
			if line := src.line(at.line); flow == 0 && len(line)-len(strings.TrimLeft(line, " \t")) > maxColumns {
				return newError(at, "", "nested deeper than %d columns", maxColumns)
			}
		case token.AnchorType, token.AliasType, token.TagType:
			if markers++; markers > maxMarkers {
				return newError(at, "", "more than %d anchors, aliases and tags", maxMarkers)
			}
		}
	}
	return nil
}

// keyCounts counts the keys of the mappings that are open: those of a block, which begin in one
// column, and those between braces.
type keyCounts struct {
	most    int
	columns []counted // of blocks, ascending
	braces  []counted
	// first is the column of the first token of a line that is no dash, 0 after dashes alone.
	line, first int
}

type counted struct{ column, keys int }

func (k *keyCounts) add(tk *token.Token, at position) {
	dash := tk.Type == token.SequenceEntryType
	if at.line != k.line {
		k.line, k.first = at.line, 0
	}
	if k.first == 0 && !dash {
		k.first = at.column
	}
	switch tk.Type {
	case token.MappingStartType, token.SequenceStartType:
		k.braces = append(k.braces, counted{})
	case token.MappingEndType, token.SequenceEndType:
		k.braces = k.braces[:max(len(k.braces)-1, 0)]
	case token.SequenceEntryType:
		// Keys deeper than this dash are of the item before.
		if len(k.braces) == 0 {
			k.end(at.column + 1)
		}
	case token.MappingValueType, token.MappingKeyType:
		of := &k.braces
		if len(k.braces) == 0 {
			k.end(k.first + 1)
			if n := len(k.columns); n == 0 || k.columns[n-1].column < k.first {
				k.columns = append(k.columns, counted{column: k.first})
			}
			of = &k.columns
		}
		last := &(*of)[len(*of)-1]
		last.keys++
		k.most = max(k.most, last.keys)
	}
}

// end forgets the blocks that begin in that column or after it.
func (k *keyCounts) end(column int) {
	n := len(k.columns)
	for n > 0 && k.columns[n-1].column >= column {
		n--
	}
	k.columns = k.columns[:n]
}

func syntaxError(src *source, err error) *Error {
	var located yaml.Error
	if errors.As(err, &located) {
		return newError(tokenPosition(src, located.GetToken()), "", "syntax: %s", located.GetMessage())
	}
	return newError(position{src: src}, "", "syntax: %v", err)
}

func tokenPosition(src *source, tk *token.Token) position {
	if tk == nil || tk.Position == nil {
		return position{src: src}
	}
	line := min(max(tk.Position.Line, 1), len(src.lines))
	return position{src: src, line: line, column: max(tk.Position.Column, 1)}
}

// converter turns the parser's tree into nodes: aliases expanded, scalars resolved, duplicates
// found.
type converter struct {
	src     *source
	anchors map[string]*node
	nodes   int
	errs    Errors
}

func (c *converter) fail(at position, path, format string, args ...any) {
	c.errs = append(c.errs, newError(at, path, format, args...))
}

func (c *converter) position(n ast.Node) position {
	switch t := n.(type) {
	case *ast.MappingNode:
		// A block mapping's own token is its first colon; the place people look at is its first
		// key.
		if !t.IsFlowStyle && len(t.Values) > 0 {
			return c.position(t.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return c.position(t.Key)
	}
	return tokenPosition(c.src, n.GetToken())
}

// convert never returns nil; what it cannot read becomes null and an error.
func (c *converter) convert(n ast.Node, path string, depth int) *node {
	at := c.position(n)
	null := &node{at: at}
	if c.nodes++; c.nodes > maxNodes || depth > maxDepth {
		if len(c.errs) == 0 || c.nodes <= maxNodes {
			c.fail(at, path, "nested deeper than %d levels or larger than %d values", maxDepth, maxNodes)
		}
		return null
	}
	switch t := n.(type) {
	case *ast.MappingNode:
		return c.mapping(t.Values, at, path, depth)
	case *ast.MappingValueNode:
		return c.mapping([]*ast.MappingValueNode{t}, at, path, depth)
	case *ast.SequenceNode:
		out := &node{kind: kindSequence, at: at}
		for i, item := range t.Values {
			out.items = append(out.items, c.convert(item, joinPath(path, fmt.Sprintf("[%d]", i)), depth+1))
		}
		return out
	case *ast.AnchorNode:
		value := c.convert(t.Value, path, depth+1)
		c.anchors[t.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		name := t.Value.GetToken().Value
		target, ok := c.anchors[name]
		if !ok {
			c.fail(at, path, "alias *%s has no anchor before it", name)
			return null
		}
		return c.copy(target, at, path, depth)
	case *ast.TagNode:
		return c.tagged(t, at, path, depth)
	case *ast.LiteralNode:
		return &node{kind: kindString, text: t.Value.Value, at: at}
	case *ast.NullNode:
		return null
	case ast.ScalarNode:
		return scalarNode(t, at)
	}
	c.fail(at, path, "%s is not supported in a configuration", strings.ToLower(n.Type().String()))
	return null
}

// tagged reads a scalar with one of the tags of YAML's core schema.
func (c *converter) tagged(t *ast.TagNode, at position, path string, depth int) *node {
	tag := t.GetToken().Value
	want, ok := map[string]kind{"!!float": kindFloat, "!!int": kindInt, "!!bool": kindBool, "!!str": kindString}[tag]
	if !ok || t.Value == nil {
		c.fail(at, path, "tag %s is not supported; write the value plainly, quoted if it is a string", tag)
		return &node{at: at}
	}
	n := c.convert(t.Value, path, depth+1)
	switch {
	case n.kind == want, n.kind == kindInt && want == kindFloat:
	case n.kind < kindSequence && want == kindString:
		n.kind = kindString
	default:
		c.fail(at, path, "expected %s after %s, found %s", want, tag, describe(n))
	}
	return n
}

// copy expands an alias. Copies count towards maxNodes, so that nested aliases cannot multiply
// without bound.
func (c *converter) copy(n *node, at position, path string, depth int) *node {
	if c.nodes++; c.nodes > maxNodes || depth > maxDepth {
		if c.nodes == maxNodes+1 || depth == maxDepth+1 {
			c.fail(at, path, "aliases expand to more than %d values or %d levels", maxNodes, maxDepth)
		}
		return &node{at: at}
	}
	out := &node{kind: n.kind, text: n.text, at: n.at}
	for _, e := range n.entries {
		e.value = c.copy(e.value, at, path, depth+1)
		out.entries = append(out.entries, e)
		if c.nodes > maxNodes {
			break
		}
	}
	for _, item := range n.items {
		out.items = append(out.items, c.copy(item, at, path, depth+1))
		if c.nodes > maxNodes {
			break
		}
	}
	return out
}

func (c *converter) mapping(values []*ast.MappingValueNode, at position, path string, depth int) *node {
	out := &node{kind: kindMapping, at: at}
	seen := map[string]position{}
	var merges []*node
	for _, v := range values {
		keyAt := c.position(v.Key)
		if v.Key.IsMergeKey() {
			merges = append(merges, c.convert(v.Value, joinPath(path, "<<"), depth+1))
			continue
		}
		key, ok := mappingKey(v.Key)
		if !ok {
			c.fail(keyAt, path, "a key must be plain text, found %s", strings.ToLower(v.Key.Type().String()))
			continue
		}
		keyPath := joinPath(path, pathKey(key))
		if first, dup := seen[key]; dup {
			c.fail(keyAt, keyPath, "key %q given twice; first on line %d", key, first.line)
			continue
		}
		seen[key] = keyAt
		out.entries = append(out.entries, entry{key: key, at: keyAt, value: c.convert(v.Value, keyPath, depth+1)})
	}
	for _, m := range merges {
		c.merge(out, m, path)
	}
	return out
}

// merge adds the entries of a "<<" value that out does not have yet. Keys of the mapping itself
// win, then earlier merges.
func (c *converter) merge(out, m *node, path string) {
	if m.kind == kindSequence {
		for _, item := range m.items {
			if item.kind == kindSequence {
				c.fail(item.at, path, "<< takes mappings, found a list within a list")
				return
			}
			c.merge(out, item, path)
		}
		return
	}
	if m.kind != kindMapping {
		c.fail(m.at, path, "<< takes a mapping or a list of mappings, found %s", m.kind)
		return
	}
	for _, e := range m.entries {
		if out.lookup(e.key) == nil {
			out.entries = append(out.entries, e)
		}
	}
}

func mappingKey(key ast.MapKeyNode) (string, bool) {
	var n ast.Node = key
	if explicit, ok := n.(*ast.MappingKeyNode); ok {
		n = explicit.Value
	}
	switch t := n.(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return t.GetToken().Value, true
	}
	return "", false
}

func scalarNode(n ast.ScalarNode, at position) *node {
	tk := n.GetToken()
	if s, ok := n.(*ast.StringNode); ok {
		if tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType {
			return &node{kind: kindString, text: s.Value, at: at}
		}
		return &node{kind: resolve(s.Value), text: s.Value, at: at}
	}
	return &node{kind: resolve(tk.Value), text: tk.Value, at: at}
}
