package glob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// WouldFind reports whether Files(pattern) would return a file in this folder
// whose name matches one of names, if there were one. The folder need not exist,
// and names may have slashes. Links lead where they lead for Files.
func WouldFind(pattern, folder string, names ...string) (bool, error) {
	above, err := ancestors(folder)
	if err != nil {
		return false, err
	}
	start, pattern := ".", filepath.ToSlash(pattern)
	if strings.HasPrefix(pattern, "/") {
		start = "/"
	}
	return wouldFind(start, strings.Split(strings.TrimLeft(pattern, "/"), "/"), above, names), nil
}

// wouldFind looks for the folder that is wanted in the same way as Files looks
// for files: elements of the pattern lead from one folder to the next.
func wouldFind(folder string, elements []string, above []ancestor, names []string) bool {
	info, err := os.Stat(folder)
	if err != nil {
		return false
	}
	rest := strings.Join(elements, "/")
	for _, a := range above {
		if os.SameFile(a.info, info) && slices.ContainsFunc(names, func(name string) bool { return overlap(rest, a.below(name), false) }) {
			return true
		}
	}
	if len(elements) == 1 {
		return false // it names a file
	}
	first, more := elements[0], elements[1:]
	next := func(folder string) bool { return wouldFind(folder, more, above, names) }
	switch {
	case first == "**":
		found := false
		_ = filepath.WalkDir(folder+"/", func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && next(path) {
				found = true
				return fs.SkipAll
			}
			return nil // Files says what cannot be read
		})
		return found
	case !strings.ContainsAny(first, `*?[\`):
		return next(folder + "/" + first)
	}
	entries, _ := os.ReadDir(folder)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		mayBeFolder := e.IsDir() || e.Type()&fs.ModeSymlink != 0
		return mayBeFolder && doublestar.MatchUnvalidated(translate(first, false), e.Name()) && next(folder+"/"+e.Name())
	})
}

// IsIn reports whether a folder, which need not exist, is another one or below
// it. below is the path from there, with slashes.
func IsIn(folder, other string) (below string, is bool, err error) {
	above, err := ancestors(folder)
	if err != nil {
		return "", false, err
	}
	info, err := os.Stat(other)
	if err != nil {
		return "", false, err
	}
	for _, a := range above {
		if os.SameFile(a.info, info) {
			return a.rest, true, nil
		}
	}
	return "", false, nil
}

// ancestor is a folder above another one, or that folder itself.
type ancestor struct {
	info os.FileInfo
	rest string // the path from it to the other one
}

// below returns the pattern of files in the other folder.
func (a ancestor) below(name string) string {
	if a.rest == "" {
		return name
	}
	return Escape(a.rest) + "/" + name
}

// ancestors returns the existing folders above a folder, and the folder itself if
// it exists, closest first.
func ancestors(folder string) (above []ancestor, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	rest := ""
	join := func(name string) string { return strings.TrimSuffix(name+"/"+rest, "/") }
	for {
		existing, err := filepath.EvalSymlinks(folder)
		if err == nil {
			folder = existing
			break
		}
		if parent := filepath.Dir(folder); errors.Is(err, fs.ErrNotExist) && parent != folder {
			rest, folder = join(filepath.Base(folder)), parent
			continue
		}
		return nil, err
	}
	for {
		info, err := os.Stat(folder)
		if err != nil {
			return nil, err
		}
		above = append(above, ancestor{info, rest})
		parent := filepath.Dir(folder)
		if parent == folder {
			return above, nil
		}
		rest, folder = join(filepath.Base(folder)), parent
	}
}

// KeysOverlap reports whether a key exists that matches two patterns of Keys.
func KeysOverlap(a, b string) bool { return overlap(a, b, true) }

// overlap reports whether a text matches two patterns. If anyDepth is set, they
// are patterns of keys.
func overlap(a, b string, anyDepth bool) bool {
	o := overlapping{parse(a, anyDepth), parse(b, anyDepth), map[[2]int]bool{}}
	return o.from(0, 0)
}

// overlapping follows two patterns side by side, as automata.
type overlapping struct {
	a, b []atom
	seen map[[2]int]bool
}

// from reports whether a text matches the patterns from these atoms on.
func (o *overlapping) from(i, j int) bool {
	if i == len(o.a) && j == len(o.b) {
		return true
	}
	if o.seen[[2]int{i, j}] {
		return false
	}
	o.seen[[2]int{i, j}] = true
	for _, skip := range skips(o.a[i:]) {
		if o.from(i+skip, j) {
			return true
		}
	}
	for _, skip := range skips(o.b[j:]) {
		if o.from(i, j+skip) {
			return true
		}
	}
	if i == len(o.a) || j == len(o.b) || !meet(o.a[i], o.b[j]) {
		return false
	}
	return o.from(i+o.a[i].step(), j+o.b[j].step())
}

// atom is a piece of a pattern that matches one character, or many.
type atom struct {
	literal string // the one character that it matches; "" for others
	class   string // in brackets; "" for any character
	many    bool   // any number of characters
	slashes bool   // matches slashes too
	folders bool   // many, and with the slash that follows it may match nothing
}

// step is how far a character brings the pattern that it matches.
func (a atom) step() int {
	if a.many {
		return 0
	}
	return 1
}

// skips lists how many of the first atoms may match nothing.
func skips(atoms []atom) (n []int) {
	switch {
	case len(atoms) == 0 || !atoms[0].many:
		return nil
	case atoms[0].folders:
		return []int{1, 2}
	}
	return []int{1}
}

// meet reports whether a character matches both atoms. Of two classes it tries
// ASCII alone.
func meet(a, b atom) bool {
	switch {
	case a.literal != "":
		return b.matches(a.literal)
	case b.literal != "":
		return a.matches(b.literal)
	}
	for c := byte(1); c < 0x80; c++ {
		if a.matches(string(c)) && b.matches(string(c)) {
			return true
		}
	}
	return false
}

func (a atom) matches(character string) bool {
	switch {
	case a.literal != "":
		return a.literal == character
	case character == "/":
		return a.slashes
	case a.class != "":
		return doublestar.MatchUnvalidated(translate(a.class, false), character)
	}
	return true
}

// parse takes a pattern apart. It must not be malformed.
func parse(pattern string, anyDepth bool) (atoms []atom) {
	for i := 0; i < len(pattern); {
		rest, begins := pattern[i:], i == 0 || pattern[i-1] == '/'
		switch {
		case begins && strings.HasPrefix(rest, "**/") && (len(rest) > 3 || !anyDepth):
			atoms, i = append(atoms, atom{many: true, slashes: true, folders: true}), i+2
		case begins && rest == "**" && !anyDepth: // files at any depth
			atoms, i = append(atoms, atom{many: true, slashes: true}), i+2
		case anyDepth && strings.HasPrefix(rest, "**"):
			atoms, i = append(atoms, atom{many: true, slashes: true}), i+2
		case rest[0] == '*':
			atoms, i = append(atoms, atom{many: true}), i+1
		case rest[0] == '?':
			atoms, i = append(atoms, atom{}), i+1
		case rest[0] == '[':
			n := classLength(rest)
			atoms, i = append(atoms, atom{class: rest[:n]}), i+n
		default:
			if rest[0] == '\\' && len(rest) > 1 {
				rest, i = rest[1:], i+1
			}
			for _, r := range rest {
				atoms, i = append(atoms, atom{literal: string(r)}), i+len(string(r))
				break
			}
		}
	}
	return atoms
}

// classLength returns the length of the class at the start of a pattern.
func classLength(pattern string) int {
	for i := 1; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case pattern[i] == ']':
			return i + 1
		}
	}
	return len(pattern)
}
