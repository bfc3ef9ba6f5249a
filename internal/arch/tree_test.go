package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the path that makes an import one of ours.
const module = "github.com/leadetl/leadetl"

// pkg is what the rules look at: the code of a folder without its tests, for
// all platforms and build tags at once.
type pkg struct {
	path    string // relative to the module; "." is the root
	name    string
	doc     string // package comment
	imports []imported
	outside []string // imports of packages that are not ours
	inits   int
	files   int // test files and generated ones aside
}

// imported is an import of a package of ours.
type imported struct {
	path  string // relative to the module
	blank bool   // imported as _
}

// load reads every package of the module in tree, by path. It walks the files
// itself rather than asking go list: that sees one platform at a time, and a
// test's cached result would outlive a change it only heard of.
func load(tree fs.FS) ([]pkg, error) {
	found := map[string]*pkg{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(tree, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		if found[folder] == nil {
			found[folder] = &pkg{path: folder, name: file.Name.Name}
		}
		return found[folder].add(file)
	})
	var all []pkg
	for _, p := range found {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b pkg) int { return strings.Compare(a.path, b.path) })
	return all, err
}

// skip passes by the folders the go command passes by, nested modules
// included.
func skip(tree fs.FS, folder string) error {
	if folder == "." {
		return nil
	}
	base := path.Base(folder)
	if base == "testdata" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(folder, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// add takes in one more file of the package.
func (p *pkg) add(file *ast.File) error {
	if !ast.IsGenerated(file) {
		p.files++
	}
	if text := file.Doc.Text(); text != "" {
		p.doc = text
	}
	for _, spec := range file.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if relative, ours := strings.CutPrefix(to+"/", module+"/"); ours {
			i := imported{path: path.Clean(relative), blank: spec.Name != nil && spec.Name.Name == "_"}
			if !slices.Contains(p.imports, i) {
				p.imports = append(p.imports, i)
			}
		} else if !slices.Contains(p.outside, to) {
			p.outside = append(p.outside, to)
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			p.inits++
		}
	}
	return nil
}
