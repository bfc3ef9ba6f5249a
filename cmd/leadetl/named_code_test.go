package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	goName   = regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Za-z]\w*)?(\(\))?$`)
	// nameInFile is a name with the file that declares it: `Open` (`a/b.go`).
	nameInFile = regexp.MustCompile("`([\\w.]+)(?:\\(\\))?`\\s\\(`([\\w/.]+\\.go)`\\)")
	testName   = regexp.MustCompile(`^Test[A-Z]\w*$`)
	fence      = regexp.MustCompile("(?s)```.*?```")
)

// TestNamedCode: the paths and the names of Go code in the pages about the code
// exist. Checked are spans with a slash or a file ending, which are paths from
// the root, and names with a dot or parentheses: a package's (purchase.Open),
// a type's (Buyer.Answer) or a function's (main()).
func TestNamedCode(t *testing.T) {
	declared := declaredNames(t)
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(clitest.ModuleRoot, page))
		if err != nil {
			t.Fatal(err)
		}
		prose := fence.ReplaceAllString(string(text), "")
		checked := 0
		for _, m := range codeSpan.FindAllStringSubmatch(prose, -1) {
			span := m[1]
			switch {
			case isPath(span):
				if _, err := os.Stat(filepath.Join(clitest.ModuleRoot, span)); err != nil {
					t.Errorf("%s names %s, which does not exist", page, span)
				}
				checked++
			case goName.MatchString(span) && strings.ContainsAny(span, ".(") || testName.MatchString(span):
				if name := strings.TrimSuffix(span, "()"); len(declared[name]) == 0 {
					t.Errorf("%s names %s, which is not declared", page, span)
				}
				checked++
			}
		}
		for _, m := range nameInFile.FindAllStringSubmatch(prose, -1) {
			if !slices.Contains(declared[m[1]], m[2]) {
				t.Errorf("%s says that %s is in %s; it is in %q", page, m[1], m[2], declared[m[1]])
			}
		}
		if checked == 0 {
			t.Errorf("%s names no code", page)
		}
	}
}

// isPath reports whether a code span is a path from the root.
func isPath(span string) bool {
	if strings.ContainsAny(span, " *:<>") {
		return false
	}
	return strings.Contains(span, "/") || slices.Contains([]string{".go", ".md", ".mod", ".yaml"}, filepath.Ext(span))
}

// declaredNames are the names that Go files declare, with the files: Name,
// package.Name, Type.Method and Type.Field.
func declaredNames(t *testing.T) map[string][]string {
	names := map[string][]string{}
	err := filepath.WalkDir(clitest.ModuleRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "out", "testdata"}, d.Name()) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(clitest.ModuleRoot, path)
		if err != nil {
			return err
		}
		for _, name := range namesOf(file) {
			names[name] = append(names[name], filepath.ToSlash(at))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func namesOf(file *ast.File) (names []string) {
	top := func(name string) { names = append(names, name, file.Name.Name+"."+name) }
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				top(d.Name.Name)
				continue
			}
			of := d.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if generic, ok := of.(*ast.IndexExpr); ok {
				of = generic.X
			}
			if of, ok := of.(*ast.Ident); ok {
				names = append(names, of.Name+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						top(n.Name)
					}
				case *ast.TypeSpec:
					top(s.Name.Name)
					names = append(names, membersOf(s)...)
				}
			}
		}
	}
	return names
}

// membersOf are the fields of a struct, and the methods of an interface.
func membersOf(s *ast.TypeSpec) (names []string) {
	var fields *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return nil
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			names = append(names, s.Name.Name+"."+n.Name)
		}
	}
	return names
}
