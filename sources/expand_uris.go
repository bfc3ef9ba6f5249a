package sources

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/glob"
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
			return nil, &FormatError{File: `""`, Problem: "is not a file name", Advice: "Name a file, a glob or - for standard input"}
		case objects.Is(uri):
			found, err := find(ctx, uri, store)
			if err != nil {
				return nil, err
			}
			names = append(names, found...)
			continue
		case strings.Contains(uri, "://"):
			return nil, &FormatError{File: uri, Problem: "is neither a local file nor on S3", Advice: "Copy it to this machine first"}
		case uri == standardInput || !strings.ContainsAny(uri, "*?["):
			add(uri)
			continue
		}
		if _, err := os.Lstat(uri); err == nil {
			add(uri)
			continue
		}
		matches, err := globFiles(uri)
		if err != nil {
			return nil, err
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
		return nil, &FormatError{File: uri, Problem: "is on S3; S3 is not configured here", Advice: "Copy it to this machine first"}
	}
	var refused *objects.RefusedError
	found, err := store.Find(ctx, uri)
	switch {
	case errors.As(err, &refused), errors.Is(err, objects.ErrUnavailable), ctx.Err() != nil && err != nil:
		return nil, err
	case errors.Is(err, path.ErrBadPattern):
		return nil, malformedPattern(uri, err)
	case err != nil:
		return nil, &FormatError{File: uri, Problem: "is not an S3 address", Advice: "Write s3://bucket/key, with any pattern after the bucket", Err: err}
	case len(found) == 0:
		return nil, &FormatError{File: uri, Problem: "matches no object", Advice: "Check the bucket and the pattern; put it in quotes if the shell changes it"}
	}
	for _, o := range found {
		names = append(names, named{o.String(), o})
	}
	return names, nil
}

func givenTwice(name string) error {
	return &FormatError{File: name, Problem: "is given twice", Advice: "Name it once; its rows would count twice"}
}

// globFiles returns the files that match a pattern.
func globFiles(pattern string) ([]string, error) {
	matches, err := glob.Files(pattern)
	var unread *fs.PathError
	switch {
	case errors.Is(err, path.ErrBadPattern):
		err = malformedPattern(pattern, err)
	case errors.As(err, &unread):
		err = &FormatError{File: unread.Path, Problem: "cannot be searched",
			Advice: "Make it readable, or choose a pattern that leaves it out", Err: err}
	case err == nil && len(matches) == 0:
		err = &FormatError{File: pattern, Problem: "matches no file", Advice: "Check the pattern; put it in quotes if the shell changes it"}
	}
	return matches, err
}

func malformedPattern(pattern string, err error) error {
	return &FormatError{File: pattern, Problem: "is a malformed pattern", Advice: "Close its brackets", Err: err}
}
