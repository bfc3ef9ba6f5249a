package sources

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// match is filepath.Glob, except that a folder it cannot read is an error:
// filepath.Glob goes on without the files in it, which makes a smaller
// dataset that looks whole. The pattern must be well-formed.
func match(pattern string) ([]string, error) {
	if !hasMeta(pattern) {
		found, err := exists(pattern)
		if !found {
			return nil, err
		}
		return []string{pattern}, nil
	}
	before, element := filepath.Split(pattern)
	folders, err := match(folderOf(before))
	if err != nil {
		return nil, err
	}
	var matches []string
	for _, folder := range folders {
		names, err := namesIn(folder, element)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			matches = append(matches, filepath.Join(folder, name))
		}
	}
	return matches, nil
}

// namesIn returns the names in a folder that one element of a pattern
// matches, sorted; none when it is no folder.
func namesIn(folder, element string) (names []string, err error) {
	if !hasMeta(element) { // the folder need not be listed
		found, err := exists(folder + string(filepath.Separator) + element)
		if !found {
			return nil, err
		}
		return []string{element}, nil
	}
	// Only folders are opened: to open a pipe could take forever.
	info, err := os.Stat(folder)
	if absent(err) || err == nil && !info.IsDir() {
		return nil, nil
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = os.ReadDir(folder)
	}
	if err != nil {
		return nil, unsearchable(folder, err)
	}
	for _, e := range entries {
		if matched, _ := filepath.Match(element, e.Name()); matched {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// folderOf makes the folder part that filepath.Split returns a pattern.
func folderOf(before string) string {
	switch before {
	case "":
		return "."
	case string(filepath.Separator):
		return before
	}
	return before[:len(before)-1]
}

func hasMeta(pattern string) bool { return strings.ContainsAny(pattern, `*?[\`) }

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	switch {
	case absent(err):
		return false, nil
	case err != nil:
		return false, unsearchable(path, err)
	}
	return true, nil
}

// absent reports whether an error says that nothing has this name: a link
// may lead nowhere, and a file may stand in a folder's place.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func unsearchable(path string, err error) error {
	return &FormatError{File: path, Problem: "cannot be searched",
		Advice: "Check that it can be read, or choose a pattern that leaves it out", Err: err}
}
