package objects

import (
	"context"
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/internal/glob"
)

// Find lists the objects that a URI names: one object, all objects below a
// prefix that ends in a slash, or all that match a glob. Below a prefix, names
// that begin with _ or . are skipped, as other readers of folders do.
//
// Package glob describes the patterns. An object whose key equals the pattern
// also matches.
//
// A single named object is not requested: its Info has only its location.
func (s *Store) Find(ctx context.Context, uri string) ([]Info, error) {
	return s.FindSeeing(ctx, uri, func(Info) {})
}

// FindSeeing is Find, and calls seen with every object that is listed, also
// hidden ones.
func (s *Store) FindSeeing(ctx context.Context, uri string, seen func(Info)) ([]Info, error) {
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
		if matches, err = glob.Keys(at.Key); err != nil {
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		from.Key = at.Key[:meta]
	}
	var found []Info
	folders := map[string]bool{}
	for o, err := range s.List(ctx, from) {
		if err == nil {
			seen(o)
		}
		switch {
		case err != nil:
			return nil, err
		case meta >= 0 && o.Key == at.Key:
			return []Info{o}, nil
		}
		for i, c := range []byte(o.Key) {
			if c == '/' {
				folders[o.Key[:i]] = true
			}
		}
		if matches(o.Key) {
			found = append(found, o)
		}
	}
	for i := range found {
		found[i].IsFolder = folders[found[i].Key]
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
