package cliflag

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"
)

// ApplyFile sets the flags that a YAML file names. Every flag is a key, with _
// or - between words. Flags of the command line win. nameFlag is the flag that
// names the file, such as "job"; it is not a key. other holds keys that are
// not flags, and receives their values.
//
// The error joins every problem of the file, each with its line.
func ApplyFile(nameFlag, path string, flags *pflag.FlagSet, other map[string]*string) error {
	f := settingsFile{nameFlag: nameFlag, path: path, flags: flags, other: other, given: map[string]bool{}, seen: map[string]bool{}}
	return f.apply()
}

type settingsFile struct {
	nameFlag string
	path     string
	flags    *pflag.FlagSet
	other    map[string]*string
	given    map[string]bool // flags of the command line
	seen     map[string]bool // keys so far
	problems []error
}

func (f *settingsFile) apply() error {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return openError(f.nameFlag, f.path, err)
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey()) // duplicates get our own message
	if err != nil {
		return f.syntaxError(err)
	}
	f.flags.Visit(func(flag *pflag.Flag) { f.given[flag.Name] = true })
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		mapping, ok := doc.Body.(ast.MapNode)
		if !ok {
			f.fail(doc.Body, "a %s file consists of `key: value` lines", f.nameFlag)
			continue
		}
		for entries := mapping.MapRange(); entries.Next(); {
			f.applyKey(entries.Key(), entries.Value())
		}
	}
	return errors.Join(f.problems...)
}

// openError says why a file could not be read.
func openError(nameFlag, path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--%s: there is no file %s", nameFlag, path)
	}
	return fmt.Errorf("--%s: %w", nameFlag, err)
}

func (f *settingsFile) syntaxError(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		return fmt.Errorf("%s:%d: %s", f.path, syntax.Token.Position.Line, syntax.Message)
	}
	return fmt.Errorf("%s: %w", f.path, err)
}

func (f *settingsFile) fail(n ast.Node, format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf("%s:%d: %s", f.path, n.GetToken().Position.Line, fmt.Sprintf(format, args...)))
}

func (f *settingsFile) applyKey(key ast.MapKeyNode, value ast.Node) {
	written := key.GetToken().Value
	word := strings.ReplaceAll(written, "-", "_")
	name := strings.ReplaceAll(written, "_", "-")
	if f.seen[name] {
		f.fail(key, "%s is given twice", word)
		return
	}
	f.seen[name] = true
	flag, other := f.flags.Lookup(name), f.other[name]
	if other == nil && (flag == nil || name == f.nameFlag || name == "help" || name == "help-all") {
		f.fail(key, "unknown key %q; did you mean %q?", written, nearest(word, f.keys()))
		return
	}
	values, isList, err := scalars(value)
	list, takesList := pflag.SliceValue(nil), false
	if flag != nil {
		list, takesList = flag.Value.(pflag.SliceValue)
	}
	switch {
	case err != nil:
		f.fail(key, "%s %v", word, err)
	case isList && !takesList:
		f.fail(key, "%s takes one value, not a list", word)
	case other != nil:
		*other = values[0]
	case f.given[name]:
	case isList:
		if err := list.Replace(values); err != nil { // each as it stands, commas and all
			f.fail(value, "%s: %v", word, err)
		}
	default:
		err = f.flags.Set(name, values[0])
	}
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		f.fail(key, "%s %q: %s", word, wrong.GetValue(), ExpectedValue(wrong))
	}
}

// keys are the known keys, spelled with _.
func (f *settingsFile) keys() (keys []string) {
	for name := range f.other {
		keys = append(keys, name)
	}
	for _, name := range Names(f.flags) {
		if name != f.nameFlag {
			keys = append(keys, strings.ReplaceAll(name, "-", "_"))
		}
	}
	return keys
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
