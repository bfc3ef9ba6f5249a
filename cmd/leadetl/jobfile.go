package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"
)

// applyJobFile sets the flags that a job file names. Every flag is a key (with
// _ or - between words), plus "operation"; flags given on the command line
// win. It returns the operation, "" if the file names none. Its error joins
// every problem of the file, each with its line.
func applyJobFile(path string, flags *pflag.FlagSet) (operation string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--job: %w", err)
	}
	j := jobFile{path: path, flags: flags, known: []string{"operation"}, given: map[string]bool{}, seen: map[string]bool{}}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey()) // we name them ourselves
	if err != nil {
		return "", j.syntax(err)
	}
	for _, name := range flagNames(flags) {
		if name != "job" {
			j.known = append(j.known, strings.ReplaceAll(name, "-", "_"))
		}
	}
	flags.Visit(func(f *pflag.Flag) { j.given[f.Name] = true })
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		mapping, ok := doc.Body.(ast.MapNode)
		if !ok {
			j.fail(doc.Body, "a job file is made of `key: value` lines")
			continue
		}
		for entries := mapping.MapRange(); entries.Next(); {
			j.apply(entries.Key(), entries.Value())
		}
	}
	return j.operation, errors.Join(j.problems...)
}

// jobFile is a job file being applied.
type jobFile struct {
	path      string
	flags     *pflag.FlagSet
	known     []string        // keys, spelled with _
	given     map[string]bool // flags of the command line
	seen      map[string]bool // keys so far
	operation string
	problems  []error
}

func (j *jobFile) fail(n ast.Node, format string, args ...any) {
	j.problems = append(j.problems, fmt.Errorf("%s:%d: %s", j.path, n.GetToken().Position.Line, fmt.Sprintf(format, args...)))
}

// syntax is a parser's error on one line.
func (j *jobFile) syntax(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		return fmt.Errorf("%s:%d: %s", j.path, syntax.Token.Position.Line, syntax.Message)
	}
	return fmt.Errorf("%s: %w", j.path, err)
}

// apply sets one key.
func (j *jobFile) apply(key ast.MapKeyNode, value ast.Node) {
	written := key.GetToken().Value
	word := strings.ReplaceAll(written, "-", "_")
	name := strings.ReplaceAll(written, "_", "-")
	if j.seen[name] {
		j.fail(key, "%s is there twice", word)
		return
	}
	j.seen[name] = true
	flag := j.flags.Lookup(name)
	if name != "operation" && (flag == nil || name == "job" || name == "help") {
		j.fail(key, "unknown key %q; did you mean %q?", written, nearest(word, j.known))
		return
	}
	values, isList, err := scalars(value)
	list, takesList := pflag.SliceValue(nil), false
	if flag != nil {
		list, takesList = flag.Value.(pflag.SliceValue)
	}
	switch {
	case err != nil:
		j.fail(key, "%s %v", word, err)
	case isList && !takesList:
		j.fail(key, "%s takes one value, not a list", word)
	case name == "operation":
		j.operation = values[0]
	case j.given[name]:
	case isList:
		err = list.Replace(values) // each as it stands, commas and all
	default:
		err = j.flags.Set(name, values[0])
	}
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		j.fail(key, "%s %q: %s", word, wrong.GetValue(), wanted(wrong))
	}
}

// scalars is a value of a job file as text, or as a list of texts.
func scalars(n ast.Node) (values []string, isList bool, err error) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		for _, v := range n.Values {
			one, nested, err := scalars(v)
			if err != nil || nested {
				return nil, true, errors.New("takes a list of plain values")
			}
			values = append(values, one...)
		}
		return values, true, nil
	case *ast.StringNode:
		return []string{n.Value}, false, nil
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return nil, false, errors.New("takes a plain value, without anchor or tag")
	case *ast.NullNode:
		return nil, false, errors.New("has no value")
	case *ast.LiteralNode:
		return []string{n.Value.Value}, false, nil
	case ast.MapNode:
		return nil, false, errors.New("takes a value, not keys of its own")
	case ast.ScalarNode:
		return []string{n.GetToken().Value}, false, nil
	}
	return nil, false, errors.New("takes a plain value")
}
