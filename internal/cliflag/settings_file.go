package cliflag

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/internal/wholefile"
)

// ApplyFile sets the flags that a YAML file names and that are not given yet.
// Every flag is a key, with _ or - between words. nameFlag is the flag that
// names the file, such as "job"; it is not a key. ${NAME} in a value is an environment
// variable. Paths that begin with ./ are relative to the file's folder.
//
// The error joins every problem of the file, each with its line.
func ApplyFile(ctx context.Context, nameFlag, path string, flags *pflag.FlagSet, other Keys) error {
	f := settingsFile{keys: settingsKeys{nameFlag: nameFlag, flags: flags, other: other}, path: path, given: givenFlags(flags), seen: map[string]bool{}}
	return f.apply(ctx)
}

// settings is the file of a person, who writes less than that.
var settings = wholefile.Kind{Name: "a file of settings", Bytes: 1 << 20}

const (
	maxDepth    = 10 // of lists and maps in each other; settings need 2
	maxEntries  = 10_000
	maxProblems = 50 // that are listed
)

type settingsFile struct {
	keys     settingsKeys
	path     string
	given    map[string]bool // flags that are set already
	seen     map[string]bool // keys so far
	problems []error
}

func (f *settingsFile) apply(ctx context.Context) error {
	data, err := settings.Read(ctx, f.path)
	if err != nil {
		return openError(f.keys.nameFlag, f.path, err)
	}
	tokens := lexer.Tokenize(string(data))
	if line, what := tooMuch(tokens); what != "" {
		return fmt.Errorf("%s:%d: %s; a %s file consists of `key: value` lines", f.path, line, what, f.keys.nameFlag)
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // duplicates get our own message
	if err != nil {
		return f.syntaxError(err)
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		mapping, ok := doc.Body.(ast.MapNode)
		if !ok {
			f.fail(doc.Body, "a %s file consists of `key: value` lines", f.keys.nameFlag)
			continue
		}
		for entries := mapping.MapRange(); entries.Next(); {
			if len(f.problems) == maxProblems {
				f.fail(entries.Key(), "correct the problems above first; from here on the file was not read")
				return errors.Join(f.problems...)
			}
			f.applyKey(entries.Key(), entries.Value())
		}
	}
	return errors.Join(f.problems...)
}

// tooMuch returns what no file of settings has and on which line, "" if there is
// nothing. The memory and time of the parser grow with the square of the depth of lists
// and maps, and of their entries. Depth by indentation is bounded by the file's size.
func tooMuch(tokens token.Tokens) (line int, what string) {
	brackets, dashes, entries := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets = max(brackets-1, 0)
		case token.SequenceEntryType:
			dashes++
			entries++
		case token.MappingKeyType, token.MappingValueType:
			entries++
		}
		switch {
		case brackets > maxDepth || dashes > maxDepth:
			return line, fmt.Sprintf("lists and keys are nested more than %d deep", maxDepth)
		case entries > maxEntries:
			return line, fmt.Sprintf("there are more than %d keys and entries of lists", maxEntries)
		}
	}
	return 0, ""
}

// openError says why a file could not be read.
func openError(nameFlag, path string, err error) error {
	info, statErr := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--%s: there is no file %s", nameFlag, path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("--%s: %s cannot be read: permission denied; check its permissions", nameFlag, path)
	case statErr == nil && info.IsDir():
		return fmt.Errorf("--%s: %s is a folder; name the file in it", nameFlag, path)
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
	if !f.keys.known(name) {
		f.fail(key, "%v", f.keys.unknown(written))
		return
	}
	if tree := f.keys.other.Trees[name]; tree != nil {
		*tree = f.tree(value)
		return
	}
	values, isList, err := f.values(name, value)
	if err != nil {
		f.fail(key, "%s %v", word, err)
		return
	}
	if isList && !f.keys.takesList(name) {
		f.fail(key, "%s takes one value, not a list", word)
		return
	}
	flag, other := f.keys.flags.Lookup(name), f.keys.other.Texts[name]
	if f.given[name] {
		return // variables in it may be unset, so do not expand them
	}
	if values, err = f.resolve(flag, values); err != nil {
		f.fail(key, "%s: %v", word, err)
		return
	}
	switch {
	case other != nil:
		*other = values[0]
	case isList:
		if err := flag.Value.(pflag.SliceValue).Replace(values); err != nil { // each value as it is, including commas
			f.fail(value, "%s: %v", word, err)
		}
	default:
		if err := f.keys.flags.Set(name, values[0]); err != nil {
			f.fail(key, "%v", settingError(word, err))
		}
	}
}

// values reads the value of a key. A list of name=value may also be written as keys with
// values.
func (f *settingsFile) values(name string, value ast.Node) (values []string, isList bool, err error) {
	pairs, ok := value.(ast.MapNode)
	if !ok || !f.keys.takesPairs(name) {
		return scalars(value)
	}
	for entries := pairs.MapRange(); entries.Next(); {
		one, nested, err := scalars(entries.Value())
		if err != nil || nested {
			return nil, true, errors.New("takes plain values")
		}
		values = append(values, entries.Key().GetToken().Value+"="+one[0])
	}
	return values, true, nil
}

// resolve replaces variables in the values of a key, and makes paths relative
// to the file's folder. flag is nil for keys that are not flags.
func (f *settingsFile) resolve(flag *pflag.Flag, values []string) (resolved []string, err error) {
	isPath := false
	if flag != nil {
		kind, _ := pflag.UnquoteUsage(flag)
		isPath = slices.Contains([]string{"file", "folder", "URI"}, kind)
	}
	for _, value := range values {
		fromFolder := isPath && strings.HasPrefix(value, "./")
		if value, err = expand(value); err != nil {
			return nil, err
		}
		if fromFolder {
			value = filepath.Join(filepath.Dir(f.path), value)
		}
		resolved = append(resolved, value)
	}
	return resolved, nil
}

// scalars reads a value of a settings file as text, or as a list of texts.
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
