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

	"github.com/leadetl/leadetl/internal/glob"
	"github.com/leadetl/leadetl/internal/objects"
)

// standardInput is the URI of standard input.
const standardInput = "-"

// expand turns URIs into file names. It replaces globs, folders and prefixes by
// their files, and file URLs by their paths. leftOut are the datasets below these
// (see leaveOut).
func expand(ctx context.Context, uris []string, store *objects.Store) (names []named, leftOut []string, err error) {
	for _, uri := range uris {
		if uri, err = localPath(uri); err != nil {
			return nil, nil, err
		}
		var found []named
		var datasets []string
		kind := kindOf(uri)
		switch kind {
		case namesNothing:
			return nil, nil, &FormatError{File: `""`, Problem: "is not a file name", Advice: "Name a file, a glob or - for standard input"}
		case namesOther:
			return nil, nil, &FormatError{File: uri, Problem: "is not supported: an input is a local file or folder, s3://bucket/key, or - for standard input",
				Advice: "Copy it to this machine or to S3 first"}
		case namesObjects:
			found, datasets, err = find(ctx, uri, store)
		case namesFile:
			found = []named{{uri: uri}}
		case namesFolder, namesFiles:
			found, datasets, err = localFiles(uri, kind)
		}
		if err != nil {
			return nil, nil, err
		}
		names, leftOut = append(names, found...), append(leftOut, datasets...)
	}
	slices.SortFunc(names, func(a, b named) int { return strings.Compare(a.uri, b.uri) })
	for i := 1; i < len(names); i++ {
		if names[i].uri == names[i-1].uri {
			return nil, nil, givenTwice(names[i].uri)
		}
	}
	slices.Sort(leftOut)
	return names, slices.Compact(leftOut), nil
}

// kind is what a URI names.
type kind uint8

const (
	namesNothing kind = iota
	namesOther        // another kind of URI
	namesObjects      // on S3
	namesFile         // also standard input
	namesFolder       // its files at any depth
	namesFiles        // a pattern of names
)

// kindOf says what a URI names. A name that exists is never treated as a pattern.
func kindOf(uri string) kind {
	switch {
	case uri == "":
		return namesNothing
	case objects.Is(uri):
		return namesObjects
	case strings.Contains(uri, "://"):
		return namesOther
	case uri == standardInput:
		return namesFile
	}
	if info, err := os.Stat(uri); err == nil && info.IsDir() {
		return namesFolder
	}
	if _, err := os.Lstat(uri); err == nil || !strings.ContainsAny(uri, "*?[") {
		return namesFile
	}
	return namesFiles
}

// localFiles lists the files of a folder, or those that match a pattern.
func localFiles(uri string, kind kind) (names []named, leftOut []string, err error) {
	var found []string
	folder, above, deep := "", uri, true
	if kind == namesFolder {
		folder = strings.TrimRight(uri, "/")
		found, err = folderFiles(uri)
	} else {
		above, deep = glob.Deep(uri, false)
		found, err = globFiles(uri)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, name := range found {
		names = append(names, named{uri: name, folder: folder, listed: true})
	}
	if !deep {
		return names, nil, nil
	}
	depth := strings.Count(strings.TrimRight(filepath.Clean(above), "/")+"/", "/")
	if filepath.Clean(above) == "." {
		depth = 0
	}
	return leaveOut(uri, names, depth, isLocalDataset)
}

// named is an input that was not inspected yet.
type named struct {
	uri     string
	object  objects.Info // for S3: from the listing
	folder  string       // that was named instead of it; empty if it was named itself
	listed  bool         // a local file in a folder, of a pattern, or in an archive
	archive *input       // of which it is an entry
}

// find lists the objects that an S3 URI names.
func find(ctx context.Context, uri string, store *objects.Store) (names []named, leftOut []string, err error) {
	if store == nil {
		return nil, nil, &FormatError{File: uri, Problem: "is on S3; S3 is not configured here", Advice: "Copy it to this machine first"}
	}
	var refused *objects.RefusedError
	manifests := map[string]objects.Info{}
	found, err := store.FindSeeing(ctx, uri, func(o objects.Info) {
		if folder, is := strings.CutSuffix(o.String(), "/"+manifestName); is {
			manifests[folder] = o
		}
	})
	switch {
	case errors.As(err, &refused), errors.Is(err, objects.ErrUnavailable), ctx.Err() != nil && err != nil:
		return nil, nil, err
	case errors.Is(err, path.ErrBadPattern):
		return nil, nil, malformedPattern(uri, err)
	case err != nil:
		return nil, nil, &FormatError{File: uri, Problem: "is not an S3 address", Advice: "Write s3://bucket/key, with any pattern after the bucket", Err: err}
	case len(found) == 0:
		return nil, nil, &FormatError{File: uri, Problem: "matches no object", Advice: "Check the bucket and the pattern" + from(store) + "; put it in quotes if the shell changes it", Err: errNoFile}
	}
	for _, o := range found {
		names = append(names, named{uri: o.String(), object: o})
	}
	at, _ := objects.Parse(uri)
	above, deep := glob.Deep(at.String(), true)
	if isPrefix := at.Key == "" || strings.HasSuffix(at.Key, "/"); !deep && !isPrefix {
		return names, nil, nil
	}
	return leaveOut(uri, names, strings.Count(above, "/"), func(folder string) (bool, error) {
		o, found := manifests[folder]
		if !found {
			return false, nil
		}
		return isDataset(ctx, store, o)
	})
}

func givenTwice(name string) error {
	return &FormatError{File: name, Problem: "is given twice", Advice: "Name it once; its rows would count twice"}
}

// folderFiles returns the files in a folder, at any depth. As on S3, it skips
// names that begin with _ or ., such as markers. Anything else that is not a
// file is an error, because the dataset would lack rows.
func folderFiles(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, &FormatError{File: folder, Problem: "cannot be listed", Advice: "Make it readable, or name its files", Err: err}
	}
	for _, e := range entries {
		if isHidden(e.Name()) {
			continue
		}
		path := filepath.Join(folder, e.Name())
		if e.IsDir() {
			below, err := folderFiles(path)
			if err != nil && !errors.Is(err, errNoFile) {
				return nil, err
			}
			files = append(files, below...)
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil, &FormatError{File: path, Problem: "is not a file", Advice: "Remove it from the folder, or name the files to read", Err: err}
		}
		files = append(files, path)
	}
	if len(files) == 0 {
		return nil, &FormatError{File: folder, Problem: "is a folder without files to read", Advice: "Names that begin with _ or . are not read", Err: errNoFile}
	}
	return files, nil
}

var errNoFile = errors.New("no file")

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
		err = &FormatError{File: pattern, Problem: "matches no file", Advice: "Check the pattern; put it in quotes if the shell changes it", Err: errNoFile}
	}
	return matches, err
}

func malformedPattern(pattern string, err error) error {
	return &FormatError{File: pattern, Problem: "is a malformed pattern", Advice: "Close its brackets", Err: err}
}
