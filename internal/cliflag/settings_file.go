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
	values, isList, ok := f.values(key, name, value)
	if !ok {
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
	texts, ok := f.resolve(word, flag, values)
	switch {
	case !ok:
	case other != nil:
		*other = texts[0]
	case isList:
		if err := flag.Value.(pflag.SliceValue).Replace(texts); err != nil { // each value as it is, including commas
			f.fail(value, "%s: %v", word, err)
		}
	default:
		if err := f.keys.flags.Set(name, texts[0]); err != nil {
			f.fail(values[0].at, "%v", settingError(word, err))
		}
	}
}

// written is a plain value, and where it is written.
type written struct {
	text string
	at   ast.Node
}

// values reads the values of a key: one, those of a list, or, where a list of name=value is
// taken, keys with values. Problems are noted, each where it is written.
func (f *settingsFile) values(key ast.MapKeyNode, name string, value ast.Node) (values []written, isList, ok bool) {
	word := strings.ReplaceAll(name, "-", "_")
	before := len(f.problems)
	pairs, isMap := value.(ast.MapNode)
	list, isSequence := value.(*ast.SequenceNode)
	switch {
	case isMap && f.keys.takesPairs(name):
		for entries := pairs.MapRange(); entries.Next(); {
			text, err := scalar(entries.Value())
			if err != nil {
				f.fail(entries.Key(), "%s takes plain values", word)
			}
			values = append(values, written{entries.Key().GetToken().Value + "=" + text, entries.Value()})
		}
	case isSequence:
		for _, item := range list.Values {
			text, err := scalar(item)
			if err != nil {
				f.fail(item, "%s takes a list of plain values", word)
			}
			values = append(values, written{text, item})
		}
	default:
		text, err := scalar(value)
		if err != nil {
			f.fail(key, "%s %v", word, err)
		}
		values = []written{{text, value}}
	}
	return values, isMap || isSequence, len(f.problems) == before
}

// resolve replaces variables in the values of a key, and makes paths relative
// to the file's folder. flag is nil for keys that are not flags. Problems are noted.
func (f *settingsFile) resolve(word string, flag *pflag.Flag, values []written) (texts []string, ok bool) {
	isPath := false
	if flag != nil {
		kind, _ := pflag.UnquoteUsage(flag)
		isPath = slices.Contains([]string{"file", "folder", "URI"}, kind)
	}
	ok = true
	for _, value := range values {
		text, err := expand(value.text)
		if err != nil {
			f.fail(value.at, "%s: %v", word, err)
			ok = false
		}
		if isPath && strings.HasPrefix(value.text, "./") {
			text = filepath.Join(filepath.Dir(f.path), text)
		}
		texts = append(texts, text)
	}
	return texts, ok
}

// scalar reads a plain value of a settings file.
func scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return "", errors.New("takes a plain value, without anchor or tag")
	case *ast.NullNode:
		return "", errors.New("has no value")
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case ast.MapNode:
		return "", errors.New("takes a value, not keys of its own")
	case ast.ScalarNode:
		return n.GetToken().Value, nil
	}
	return "", errors.New("takes a plain value")
}
