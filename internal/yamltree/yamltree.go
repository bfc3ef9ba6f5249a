// Package yamltree reads the files of YAML that people write settings in, with goccy/go-yaml. Text is
// taken as it is written, and never becomes a number, a date or a boolean; null is no value. Anchors, aliases, tags,
// merge keys and several documents are errors that say so. A key may be given twice: callers look at all.
//
// The one thing to know before using it: the memory and time of the parser grow with the square of
// the depth of lists and maps, and of their entries, so a file has bounds that are checked before
// it is parsed.
package yamltree

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds are what a file has at most.
type Bounds struct {
	Bytes   int
	Entries int // keys and items of lists
}

// MaxDepth is how deep lists and maps may be nested.
const MaxDepth = 16

// Kind is what a Node is.
type Kind uint8

// The kinds.
const (
	Null Kind = iota // no value: nothing, null or ~, which is in Text
	Text
	List
	Map
)

// Node is a value of a file.
type Node struct {
	Line   int32 // from 1
	Kind   Kind
	Quoted bool    // of a Text
	Name   string  // of a member of a map
	Text   string  // of a Text or Null, as it is written, without quotes and escapes
	Items  []*Node // of a List; of a Map its members in their order
}

// IsRepeated reports whether a member before the one at i has its name.
func (n *Node) IsRepeated(i int) bool {
	return slices.ContainsFunc(n.Items[:i], func(other *Node) bool { return other.Name == n.Items[i].Name })
}

// Error is what a file has that cannot be read.
type Error struct {
	Line int
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// Parse reads a file, which is a map, empty without a line. The error is an *Error, about the first problem.
func Parse(text []byte, most Bounds) (root *Node, err error) {
	if len(text) > most.Bytes {
		return nil, &Error{1, fmt.Sprintf("the file has more than %d KiB", most.Bytes>>10)}
	}
	if err := checkCharacters(string(text)); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(text), "\ufeff") + "\n") // it drops a tag at the end of the text
	if err := check(tokens, most.Entries); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // callers say where
	if syntax := (yaml.Error)(nil); errors.As(err, &syntax) && syntax.GetToken() != nil {
		return nil, &Error{syntax.GetToken().Position.Line, said(syntax.GetMessage())}
	}
	if err != nil {
		return nil, &Error{1, err.Error()}
	}
	return tree(file)
}

// hints say what to do about messages of the parser, by what they begin with.
var hints = map[string]string{
	"value is not allowed in this context":         "this line does not fit the one above; check its indentation, and write text with such characters in quotes",
	"mapping value is not allowed in this context": "a key where text is expected; check the indentation, and write text that has `: ` in quotes",
	"non-map value is specified":                   "this line is not of the form `name: value`",
	"tab character":                                "a tab; indent with spaces",
	"block sequence entries are not allowed":       "an item of a list begins on a line of its own; write text that begins with - in quotes",
}

func said(message string) string {
	for begins, hint := range hints {
		if strings.HasPrefix(message, begins) {
			return hint
		}
	}
	return message
}

// checkCharacters refuses what no text has.
func checkCharacters(text string) error {
	line := 1
	for i, r := range text {
		switch {
		case r == '\n':
			line++
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"), r == '\t', r == '\ufeff' && i == 0:
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			return &Error{line, "the file is not UTF-8"}
		case r < ' ', r >= 0x7f && r < 0xa0, r == '\ufeff', r == '\u2028', r == '\u2029':
			return &Error{line, fmt.Sprintf("the character %U has no place here", r)}
		}
	}
	return nil
}

// refused are kinds of tokens that no file of settings has.
var refused = map[token.Type]string{
	token.AnchorType: "an anchor; write the value out, or text in quotes", token.AliasType: "an alias; write the value out, or text that begins with * in quotes",
	token.TagType: "a tag; write text that begins with ! in quotes", token.DirectiveType: "a directive; write text that begins with % in quotes",
	token.LiteralType: severalLines, token.FoldedType: severalLines,
	token.MergeKeyType: "a merge key; write its members out", token.DocumentEndType: severalDocuments,
}

// check refuses what no file of settings has, before it is parsed.
func check(tokens token.Tokens, maxEntries int) error {
	line, dashes, entries := 0, 0, 0
	var brackets []int // the lines of those that are open
	for i, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		if what := plainProblem(t); what != "" {
			return &Error{line, what}
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets = append(brackets, line)
		case token.SequenceEndType, token.MappingEndType:
			brackets = brackets[:max(len(brackets)-1, 0)]
		case token.SequenceEntryType:
			dashes++
			entries++
			if i+1 < len(tokens) && isEmptyItem(t, tokens[i+1]) {
				return &Error{line, "an item of a list without a value"}
			}
		case token.MappingValueType:
			entries++
			if what := misread(tokens, i); what != "" {
				return &Error{line, what}
			}
		case token.CollectEntryType:
			entries++
		}
		switch {
		case refused[t.Type] != "":
			return &Error{line, refused[t.Type]}
		case len(brackets) > MaxDepth || dashes > MaxDepth:
			return &Error{line, fmt.Sprintf("lists and keys are nested more than %d deep", MaxDepth)}
		case entries > maxEntries:
			return &Error{line, fmt.Sprintf("there are more than %d keys and entries of lists", maxEntries)}
		}
	}
	if n := len(brackets); n > 0 {
		return &Error{brackets[n-1], "a bracket is not closed"}
	}
	return nil
}

// plainProblem returns what is wrong with text without quotes, which the parser reads in another way than
// YAML is defined, or people do.
func plainProblem(t *token.Token) string {
	if isQuoted(t) || t.Type == token.CommentType {
		return ""
	}
	if strings.HasPrefix(t.Error, "could not find end character") {
		return "a quote is not closed; write text that has one in quotes of the other kind"
	}
	switch plain := strings.Trim(t.Origin, " \r\n"); {
	case strings.Contains(plain, "\t"):
		return "a tab; write spaces, or \\t in double quotes"
	case strings.HasPrefix(plain, "?"):
		return "? where text is expected; write it in quotes"
	case strings.Contains(plain, "\n"):
		return severalLines + ", or indent the line below as this one"
	}
	return ""
}

const severalDocuments = "the file has several documents; write one"

const severalLines = "text of several lines; write it in one line, or in quotes"

// misread returns what is wrong with the colon of a key that the parser reads in another way than YAML is
// defined.
func misread(tokens token.Tokens, colon int) string {
	at := tokens[colon].Position
	if colon == 0 || tokens[colon-1].Position.Line != at.Line {
		return "a colon without a key on its line"
	}
	if colon+1 < len(tokens) && !isQuoted(tokens[colon-1]) {
		if next := tokens[colon+1].Position; next.Line == at.Line && next.Column == at.Column+1 {
			return "a space is missing behind the colon"
		}
	}
	return ""
}

func isQuoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

// isEmptyItem reports whether nothing belongs to the dash of an item. The parser takes what follows
// for its value.
func isEmptyItem(dash, next *token.Token) bool {
	return next.Type != token.CommentType && next.Position.Line > dash.Position.Line && next.Position.Column <= dash.Position.Column
}

// tree is the map that a file consists of.
func tree(file *ast.File) (root *Node, err error) {
	defer func() {
		if failed, is := recover().(*Error); is {
			root, err = nil, failed
		}
	}()
	root = &Node{Line: 1, Kind: Map}
	begun := false
	for _, doc := range file.Docs {
		if begun {
			return nil, &Error{doc.Start.Position.Line, severalDocuments}
		}
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		begun, root = true, node(doc.Body, 1)
		if root.Kind != Map {
			fail(doc.Body, "the file has to consist of `name: value` lines")
		}
	}
	return root, nil
}

func fail(at ast.Node, format string, args ...any) {
	panic(&Error{max(at.GetToken().Position.Line, 1), fmt.Sprintf(format, args...)})
}

// node reads a value. It panics with an *Error.
func node(from ast.Node, depth int) *Node {
	if depth > MaxDepth {
		fail(from, "lists and keys are nested more than %d deep", MaxDepth)
	}
	t := from.GetToken()
	n := &Node{Line: int32(max(t.Position.Line, 1)), Kind: Text, Quoted: isQuoted(t)}
	switch from := from.(type) {
	case *ast.SequenceNode:
		n.Kind = List
		for _, item := range from.Values {
			n.Items = append(n.Items, node(item, depth+1))
		}
	case ast.MapNode:
		n.Kind = Map
		for entries := from.MapRange(); entries.Next(); {
			key := entries.Key().GetToken()
			member := node(entries.Value(), depth+1)
			member.Name, member.Line = key.Value, int32(max(key.Position.Line, 1))
			n.Items = append(n.Items, member)
		}
	case *ast.NullNode:
		if n.Kind = Null; t.Type != token.ImplicitNullType {
			n.Text = t.Value
		}
	case *ast.StringNode:
		n.Text = from.Value
	case ast.ScalarNode:
		n.Text = t.Value
	default:
		fail(from, "text, a list or a map is expected here")
	}
	return n
}
