// Package glob finds files and keys by patterns.
//
// In a pattern * and ? match anything but slashes, [a-z] and [^a-z] match one
// character, and **/ matches any number of folders. A backslash makes the next
// character literal. Package doublestar does the matching. Unlike there, braces
// and [!a-z] have no meaning, as in package path/filepath.
package glob

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// Keys matches keys of an object store. For keys, ** matches anything, including
// slashes. A malformed pattern is path.ErrBadPattern.
func Keys(pattern string) (matches func(key string) bool, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	translated := translate(pattern, true)
	return func(key string) bool { return doublestar.MatchUnvalidated(translated, key) }, nil
}

// Files returns the files, not the folders, that match a pattern. Unlike
// filepath.Glob, it returns an *fs.PathError for a folder that cannot be read.
// Otherwise files of a dataset could be missing without notice. A malformed
// pattern is path.ErrBadPattern.
//
// A symbolic link to a folder is followed where a name or a wildcard matches it.
// It is not followed below **, because the search might not end.
func Files(pattern string) ([]string, error) {
	if _, err := path.Match(filepath.ToSlash(pattern), ""); err != nil {
		return nil, err
	}
	before, after, deep := cutDeep(pattern)
	if !deep {
		matches, err := find(pattern)
		return slices.DeleteFunc(matches, isFolder), err
	}
	roots, err := find(before)
	if err != nil {
		return nil, err
	}
	var files []string
	seen := map[string]bool{} // one root may contain another
	for _, root := range roots {
		root += string(filepath.Separator) // follows a root that is a symbolic link
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !d.IsDir() {
				return nil // a link that leads nowhere, a root that is a file, a file
			}
			if err != nil {
				return &fs.PathError{Op: "search", Path: filepath.Clean(path), Err: err}
			}
			matches, err := Files(filepath.Join(Escape(path), after))
			for _, m := range matches {
				if !seen[m] {
					seen[m] = true
					files = append(files, m)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// find returns the files and folders that match a pattern without **.
func find(pattern string) ([]string, error) {
	base, rest := doublestar.SplitPattern(translate(filepath.ToSlash(pattern), false))
	isFolder := strings.HasSuffix(rest, "/")
	if rest = path.Clean(rest); isFolder {
		rest += "/"
	}
	if info, err := os.Stat(base); err == nil && !info.IsDir() {
		return nil, nil
	}
	matches, err := doublestar.Glob(os.DirFS(base), rest, doublestar.WithFailOnIOErrors())
	var unread *fs.PathError
	if errors.As(err, &unread) {
		return nil, &fs.PathError{Op: "search", Path: filepath.Join(base, unread.Path), Err: unread.Err}
	}
	for i := range matches {
		matches[i] = filepath.Join(base, matches[i])
	}
	return matches, err
}

// cutDeep cuts a pattern around its first ** element.
func cutDeep(pattern string) (before, after string, found bool) {
	parts := strings.Split(filepath.ToSlash(pattern), "/")
	i := slices.Index(parts, "**")
	if i < 0 {
		return pattern, "", false
	}
	before = filepath.FromSlash(strings.Join(parts[:i], "/"))
	switch {
	case i == 0:
		before = "."
	case before == "": // the pattern was absolute
		before = string(filepath.Separator)
	}
	if after = filepath.FromSlash(strings.Join(parts[i+1:], "/")); after == "" {
		after = "*"
	}
	return before, after, true
}

// translate writes a pattern in the syntax of package doublestar. If anyDepth is
// set, ** also matches slashes, and need not be a whole element.
func translate(pattern string, anyDepth bool) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			i++
		case rest[0] == '{' || rest[0] == '}':
			b.WriteString(`\` + rest[:1])
		case strings.HasPrefix(rest, "[!"):
			b.WriteString(`[\!`)
			i++
		case anyDepth && strings.HasPrefix(rest, "**/") && len(rest) > 3 && (i == 0 || pattern[i-1] == '/'):
			b.WriteString("**/")
			i += 2
		case anyDepth && strings.HasPrefix(rest, "**"):
			b.WriteString("{*,*/**/*}")
			i++
		default:
			b.WriteByte(rest[0])
		}
	}
	return b.String()
}

// Deep returns the folders, as a pattern, below which a pattern matches at any
// depth; is is false if it has no **. keys says that it is a pattern of Keys.
func Deep(pattern string, keys bool) (above string, is bool) {
	if !keys {
		above, _, is = cutDeep(pattern)
		return above, is
	}
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case strings.HasPrefix(pattern[i:], "**"):
			return pattern[:strings.LastIndexByte(pattern[:i], '/')+1], true
		}
	}
	return pattern, false
}

// Escape makes a pattern that matches only the given path.
func Escape(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(path)
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
