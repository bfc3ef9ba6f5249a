package objects

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Find lists the objects that a URI names: the object itself, all objects
// below a prefix that ends in a slash, or what a glob matches. Below a prefix,
// names that begin with _ or . are passed by, as by other readers of folders.
//
// In a glob, * and ? stand for anything but slashes, [a-z] and [^a-z] for one
// character, ** for anything, slashes included, and **/ for any number of
// folders. An object that has the pattern for its key is that object.
//
// An object that is named is not looked at: its Info has its location alone.
func (s *Store) Find(ctx context.Context, uri string) ([]Info, error) {
	at, err := Parse(uri)
	if err != nil {
		return nil, err
	}
	isPrefix := at.Key == "" || strings.HasSuffix(at.Key, "/")
	meta := strings.IndexAny(at.Key, `*?[`)
	if !isPrefix && meta < 0 {
		return []Info{{Location: at}}, nil
	}
	matches, from := func(key string) bool { return !isHidden(key[len(at.Key):]) }, at
	if meta >= 0 {
		pattern, err := compile(at.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		matches, from.Key = pattern.MatchString, at.Key[:meta]
	}
	var found []Info
	for o, err := range s.List(ctx, from) {
		switch {
		case err != nil:
			return nil, err
		case meta >= 0 && o.Key == at.Key:
			return []Info{o}, nil
		case strings.HasSuffix(o.Key, "/") || !matches(o.Key): // what consoles make of a folder
			continue
		}
		found = append(found, o)
	}
	return found, nil
}

// isHidden reports whether a name, or a folder above it, begins with _ or . .
func isHidden(name string) bool {
	for _, element := range strings.Split(name, "/") {
		if strings.HasPrefix(element, "_") || strings.HasPrefix(element, ".") {
			return true
		}
	}
	return false
}

// compile makes a glob over keys a regular expression.
func compile(glob string) (*regexp.Regexp, error) {
	if _, err := path.Match(glob, ""); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(glob); {
		rest := glob[i:]
		switch {
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			i += 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			i += 2
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			i++
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			i++
		case rest[0] == '[':
			end := classEnd(rest)
			class := strings.NewReplacer(`[`, `\[`, `&`, `\&`, `~`, `\~`).Replace(rest[1:end])
			fmt.Fprintf(&b, "[%s]", class)
			i += end + 1
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	b.WriteString(`\z`)
	return regexp.Compile(b.String())
}

// classEnd is where the class at the beginning of a well-formed pattern
// closes.
func classEnd(pattern string) int {
	for i := 1; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return len(pattern) - 1
}
