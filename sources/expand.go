package sources

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/objects"
)

// standardInput is the URI of standard input.
const standardInput = "-"

// expand turns URIs into file names: globs and prefixes into what they match,
// file URLs into their paths, the rest as it is. A name that exists is never taken for a
// glob.
func expand(ctx context.Context, uris []string, store *objects.Store) ([]named, error) {
	var names []named
	add := func(found ...string) {
		for _, name := range found {
			names = append(names, named{uri: name})
		}
	}
	for _, uri := range uris {
		uri, err := localPath(uri)
		if err != nil {
			return nil, err
		}
		switch {
		case uri == "":
			return nil, &FormatError{File: `""`, Problem: "is no file name", Advice: "Name a file, a glob or - for standard input"}
		case objects.Is(uri):
			found, err := find(ctx, uri, store)
			if err != nil {
				return nil, err
			}
			names = append(names, found...)
			continue
		case strings.Contains(uri, "://"):
			return nil, &FormatError{File: uri, Problem: "is no local file and not on S3", Advice: "Copy it to this machine first"}
		case uri == standardInput || !strings.ContainsAny(uri, "*?["):
			add(uri)
			continue
		}
		if _, err := os.Lstat(uri); err == nil {
			add(uri)
			continue
		}
		matches, err := glob(uri)
		if err != nil {
			return nil, err
		}
		if len(matches) == 0 {
			return nil, &FormatError{File: uri, Problem: "matches no file", Advice: "Check the pattern; put it in quotes if the shell changes it"}
		}
		add(matches...)
	}
	slices.SortFunc(names, func(a, b named) int { return strings.Compare(a.uri, b.uri) })
	for i := 1; i < len(names); i++ {
		if names[i].uri == names[i-1].uri {
			return nil, givenTwice(names[i].uri)
		}
	}
	return names, nil
}

// named is an input that is not looked at yet.
type named struct {
	uri    string
	object objects.Info // of one on S3: what its listing said
}

// find lists what a URI of S3 names.
func find(ctx context.Context, uri string, store *objects.Store) (names []named, err error) {
	if store == nil {
		return nil, &FormatError{File: uri, Problem: "is on S3, which is not read here", Advice: "Copy it to this machine first"}
	}
	var refused *objects.RefusedError
	found, err := store.Find(ctx, uri)
	switch {
	case errors.As(err, &refused), errors.Is(err, objects.ErrUnavailable), ctx.Err() != nil && err != nil:
		return nil, err
	case errors.Is(err, path.ErrBadPattern):
		return nil, &FormatError{File: uri, Problem: "is a malformed pattern", Advice: "Close its brackets", Err: err}
	case err != nil:
		return nil, &FormatError{File: uri, Problem: "is no address on S3", Advice: "Write s3://bucket/key, and put a pattern behind the bucket", Err: err}
	case len(found) == 0:
		return nil, &FormatError{File: uri, Problem: "matches no object", Advice: "Check the bucket and the pattern; put it in quotes if the shell changes it"}
	}
	for _, o := range found {
		names = append(names, named{o.String(), o})
	}
	return names, nil
}

func givenTwice(name string) error {
	return &FormatError{File: name, Problem: "is given twice", Advice: "Each of its rows would count twice; name it once"}
}

// glob returns the files, not the folders, that match a pattern. Besides what
// filepath.Match knows, ** as a whole path element stands for any number of
// folders, none included.
func glob(pattern string) ([]string, error) {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, &FormatError{File: pattern, Problem: "is a malformed pattern", Advice: "Close its brackets", Err: err}
	}
	before, after, deep := cutDeep(pattern)
	if !deep {
		matches, err := match(pattern)
		return slices.DeleteFunc(matches, isFolder), err
	}
	roots, err := match(before)
	if err != nil {
		return nil, err
	}
	var files []string
	seen := map[string]bool{} // two roots may hold one another
	for _, root := range roots {
		// A root that is a link is followed, as in patterns without **; links
		// below it are not, so that the search ends.
		root += string(filepath.Separator)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case absent(err):
				return nil
			case err != nil:
				return unsearchable(filepath.Clean(path), err)
			case !d.IsDir():
				return nil
			}
			matches, err := glob(filepath.Join(escape(path), after))
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

// escape makes a path a pattern that matches that path alone.
func escape(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(path)
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
