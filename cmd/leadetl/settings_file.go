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

// applyJobFile sets the flags that a job file names, and returns the
// operation it names, "" if it names none.
func applyJobFile(path string, flags *pflag.FlagSet) (operation string, err error) {
	j := settingsFile{kind: "job", path: path, flags: flags, takesOperation: true}
	err = j.applyAll()
	return j.operation, err
}

// applyConfigFile sets the flags that a config file names.
func applyConfigFile(path string, flags *pflag.FlagSet) error {
	c := settingsFile{kind: "config", path: path, flags: flags}
	return c.applyAll()
}

// settingsFile is a YAML file of settings being applied. Every flag is a key
// (with _ or - between words); flags given on the command line win.
type settingsFile struct {
	kind           string // also the flag that names the file
	path           string
	flags          *pflag.FlagSet
	takesOperation bool // "operation" is a key too

	known     []string        // keys, spelled with _
	given     map[string]bool // flags of the command line
	seen      map[string]bool // keys so far
	operation string
	problems  []error
}

// applyAll sets what the file names. Its error joins every problem of the
// file, each with its line.
func (j *settingsFile) applyAll() error {
	data, err := os.ReadFile(j.path)
	if err != nil {
		return fmt.Errorf("--%s: %w", j.kind, err)
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey()) // we name them ourselves
	if err != nil {
		return j.syntax(err)
	}
	j.given, j.seen = map[string]bool{}, map[string]bool{}
	if j.takesOperation {
		j.known = append(j.known, operationKey)
	}
	flags := j.flags
	for _, name := range flagNames(flags) {
		if name != j.kind {
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
			j.fail(doc.Body, "a %s file is made of `key: value` lines", j.kind)
			continue
		}
		for entries := mapping.MapRange(); entries.Next(); {
			j.apply(entries.Key(), entries.Value())
		}
	}
	return errors.Join(j.problems...)
}

// operationKey is the key of a job file that is no flag.
const operationKey = "operation"

func (j *settingsFile) fail(n ast.Node, format string, args ...any) {
	j.problems = append(j.problems, fmt.Errorf("%s:%d: %s", j.path, n.GetToken().Position.Line, fmt.Sprintf(format, args...)))
}

// syntax is a parser's error on one line.
func (j *settingsFile) syntax(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		return fmt.Errorf("%s:%d: %s", j.path, syntax.Token.Position.Line, syntax.Message)
	}
	return fmt.Errorf("%s: %w", j.path, err)
}

// apply sets one key.
func (j *settingsFile) apply(key ast.MapKeyNode, value ast.Node) {
	written := key.GetToken().Value
	word := strings.ReplaceAll(written, "-", "_")
	name := strings.ReplaceAll(written, "_", "-")
	if j.seen[name] {
		j.fail(key, "%s is there twice", word)
		return
	}
	j.seen[name] = true
	flag := j.flags.Lookup(name)
	isOperation := j.takesOperation && name == operationKey
	if !isOperation && (flag == nil || name == j.kind || name == "help") {
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
	case isOperation:
		j.operation = values[0]
	case j.given[name]:
	case isList:
		if err := list.Replace(values); err != nil { // each as it stands, commas and all
			j.fail(value, "%s: %v", word, err)
		}
	default:
		err = j.flags.Set(name, values[0])
	}
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		j.fail(key, "%s %q: %s", word, wrong.GetValue(), wanted(wrong))
	}
}

// scalars is a value of a settings file as text, or as a list of texts.
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
