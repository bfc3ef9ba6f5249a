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

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/internal/wholefile"
	"github.com/leadetl/leadetl/internal/yamltree"
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

var bounds = yamltree.Bounds{Bytes: int(settings.Bytes), Entries: 10_000}

// maxProblems bounds the problems that are listed.
const maxProblems = 50

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
	root, err := yamltree.Parse(data, bounds)
	if bad, is := errors.AsType[*yamltree.Error](err); is {
		return fmt.Errorf("%s:%d: %s", f.path, bad.Line, bad.What)
	}
	for _, key := range root.Items {
		if len(f.problems) == maxProblems {
			f.fail(key, "correct the problems above first; from here on the file was not read")
			break
		}
		f.applyKey(key)
	}
	return errors.Join(f.problems...)
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

func (f *settingsFile) fail(n *yamltree.Node, format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf("%s:%d: %s", f.path, n.Line, fmt.Sprintf(format, args...)))
}

func (f *settingsFile) applyKey(key *yamltree.Node) {
	written := key.Name
	word := strings.ReplaceAll(written, "-", "_")
	name := strings.ReplaceAll(written, "_", "-")
	if f.seen[name] {
		does := "leave one of them out"
		if f.keys.takesList(name) {
			does = "write one list: [a, b]"
		}
		f.fail(key, "%s is given twice; %s", word, does)
		return
	}
	f.seen[name] = true
	if !f.keys.known(name) {
		f.fail(key, "%v", f.keys.unknown(written))
		return
	}
	if tree := f.keys.other.Trees[name]; tree != nil {
		*tree = f.tree(key)
		return
	}
	values, isList, ok := f.values(key, name)
	if !ok {
		return
	}
	if isList && !f.keys.takesList(name) {
		f.fail(key, "%s takes one value, not a list", word)
		return
	}
	flag := f.keys.flags.Lookup(name)
	if f.given[name] {
		return // variables in it may be unset, so do not expand them
	}
	texts, ok := f.resolve(word, flag, values)
	switch {
	case !ok:
	case isList:
		flag.Changed = true
		if err := flag.Value.(pflag.SliceValue).Replace(texts); err != nil { // each value as it is, including commas
			f.fail(key, "%s: %v", word, err)
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
	at   *yamltree.Node
}

// values reads the values of a key: one, those of a list, or, where a list of name=value is
// taken, keys with values. Problems are noted, each where it is written.
func (f *settingsFile) values(key *yamltree.Node, name string) (values []written, isList, ok bool) {
	word := strings.ReplaceAll(name, "-", "_")
	before := len(f.problems)
	isPairs := key.Kind == yamltree.Map && f.keys.takesPairs(name)
	if !isPairs && key.Kind != yamltree.List {
		text, err := scalar(key)
		if err != nil {
			f.fail(key, "%s %v", word, err)
		}
		return []written{{text, key}}, key.Kind == yamltree.Map, err == nil
	}
	for _, item := range key.Items {
		text, err := scalar(item)
		switch {
		case err != nil && isPairs:
			f.fail(item, "%s takes plain values", word)
		case err != nil:
			f.fail(item, "%s takes a list of plain values", word)
		case isPairs:
			text = item.Name + "=" + text
		}
		values = append(values, written{text, item})
	}
	return values, true, len(f.problems) == before
}

// resolve replaces variables in the values of a key, and makes paths relative
// to the file's folder. Problems are noted.
func (f *settingsFile) resolve(word string, flag *pflag.Flag, values []written) (texts []string, ok bool) {
	kind, _ := pflag.UnquoteUsage(flag)
	isPath := slices.Contains([]string{"file", "folder", "URI"}, kind)
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
func scalar(n *yamltree.Node) (string, error) {
	switch {
	case n.Kind == yamltree.Map:
		return "", errors.New("takes a value, not keys of its own")
	case n.Kind == yamltree.List:
		return "", errors.New("takes a plain value")
	case n.Kind == yamltree.Null:
		return "", errors.New("has no value")
	}
	return n.Text, nil
}
