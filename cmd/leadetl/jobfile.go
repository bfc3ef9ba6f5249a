package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"
)

// applyJobFile sets the flags that a job file names. Every flag is a key (with
// _ or - between words), plus "operation"; flags given on the command line
// win. It returns the operation, "" if the file names none.
func applyJobFile(path string, flags *pflag.FlagSet) (operation string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return "", fmt.Errorf("%s: %s", path, strings.TrimSpace(err.Error()))
	}
	var problems []error
	fail := func(n ast.Node, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s:%d: %s", path, n.GetToken().Position.Line, fmt.Sprintf(format, args...)))
	}
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	seen := map[string]bool{}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		mapping, ok := doc.Body.(ast.MapNode)
		if !ok {
			fail(doc.Body, "a job file is a list of `key: value` lines")
			continue
		}
		for entries := mapping.MapRange(); entries.Next(); {
			key := entries.Key().(ast.Node)
			name := strings.ReplaceAll(strings.Trim(entries.Key().String(), `"'`), "_", "-")
			values, err := scalars(entries.Value())
			switch flag := flags.Lookup(name); {
			case err != nil:
				fail(entries.Value(), "%s: %v", name, err)
			case seen[name]:
				fail(key, "%s is there twice", name)
			case name == "operation":
				operation = strings.Join(values, ",")
			case flag == nil || name == "job" || name == "help":
				fail(key, "unknown key %q; did you mean %q?", entries.Key().String(), nearest(name, flags))
			case given[name]:
			default:
				for _, value := range values {
					if err := flags.Set(name, value); err != nil {
						fail(entries.Value(), "%v", err)
					}
				}
			}
			seen[name] = true
		}
	}
	return operation, errors.Join(problems...)
}

// scalars is a value of a job file as flag values: one, or a list of them.
func scalars(n ast.Node) ([]string, error) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		var all []string
		for _, v := range n.Values {
			one, err := scalars(v)
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	case *ast.StringNode:
		return []string{n.Value}, nil
	case *ast.NullNode:
		return nil, errors.New("has no value")
	case ast.MapNode:
		return nil, errors.New("wants a value or a list of values, not a mapping")
	case *ast.LiteralNode:
		return []string{n.Value.Value}, nil
	case ast.ScalarNode:
		return []string{n.GetToken().Value}, nil
	}
	return nil, errors.New("wants a value or a list of values")
}

// nearest is the flag whose name takes the fewest edits to reach.
func nearest(name string, flags *pflag.FlagSet) string {
	names := []string{"operation"}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "job" && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	best := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(edits(name, a), edits(name, b)) })
	return strings.ReplaceAll(best, "-", "_")
}

// edits is the Levenshtein distance of two words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
