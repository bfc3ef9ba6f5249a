package sources

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// standardInput is the URI of standard input.
const standardInput = "-"

// expand turns URIs into file names: globs into what they match, file URLs
// into their paths, the rest as it is. A name that exists is never taken for a
// glob.
func expand(uris []string) ([]string, error) {
	var names []string
	for _, uri := range uris {
		uri, err := localPath(uri)
		if err != nil {
			return nil, err
		}
		switch {
		case uri == "":
			return nil, &FormatError{File: `""`, Problem: "is no file name", Advice: "Name a file, a glob or - for standard input"}
		case strings.HasPrefix(uri, "s3://"):
			return nil, &FormatError{File: uri, Problem: "is on S3, which cannot be read yet", Advice: "Copy it to this machine first"}
		case strings.Contains(uri, "://"):
			return nil, &FormatError{File: uri, Problem: "is no local file", Advice: "Copy it to this machine first"}
		case uri == standardInput || !strings.ContainsAny(uri, "*?["):
			names = append(names, uri)
			continue
		}
		if _, err := os.Lstat(uri); err == nil {
			names = append(names, uri)
			continue
		}
		matches, err := glob(uri)
		if err != nil {
			return nil, err
		}
		if len(matches) == 0 {
			return nil, &FormatError{File: uri, Problem: "matches no file", Advice: "Check the pattern; put it in quotes if the shell changes it"}
		}
		names = append(names, matches...)
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return nil, givenTwice(names[i])
		}
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
