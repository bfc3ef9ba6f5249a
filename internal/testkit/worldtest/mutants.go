package worldtest

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// mutantsVariable is how many mutants are tried, or how the places of those begin that are.
const mutantsVariable = "LEADETL_WORLD_MUTANTS"

const (
	mutantSeed  = 1   // decides which mutants are tried
	mutantSeeds = 150 // are the worlds that each of them lives in
	mutantLimit = 2 * time.Minute
)

// Mutated is the code that is changed, in many small ways, and what may survive.
type Mutated struct {
	Folders []string
	// Equivalent are the mutants of which nothing can be seen: the file, the function, the change
	// and the reason.
	Equivalent [][4]string
}

// mutant is a small change of one file.
type mutant struct {
	file, function, change string
	line                   int
	text                   string // the file with the change
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d (%s): %s", m.file, m.line, m.function, m.change)
}

// turned is what comes in the place of an operator.
var turned = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND}, token.ADD: {token.SUB}, token.SUB: {token.ADD},
	token.INC: {token.DEC}, token.DEC: {token.INC}, token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
}

// mutator collects the mutants of a file.
type mutator struct {
	file, source string
	positions    *token.FileSet
	function     string
	found        []mutant
	times        map[string]int // how often a function has a change
}

// mutantsOf returns all mutants of a file of the module, from its beginning to its end.
func mutantsOf(t *testing.T, module, file string) []mutant {
	text, err := os.ReadFile(filepath.Join(module, file))
	must(t, err)
	m := &mutator{file: file, source: string(text), positions: token.NewFileSet(), times: map[string]int{}}
	parsed, err := parser.ParseFile(m.positions, file, text, parser.SkipObjectResolution)
	must(t, err)
	for _, d := range parsed.Decls {
		m.function = "package"
		if f, is := d.(*ast.FuncDecl); is {
			if m.function = f.Name.Name; f.Recv != nil {
				m.function = strings.Trim(m.textOf(f.Recv.List[0].Type), "*") + "." + m.function
			}
		}
		if g, is := d.(*ast.GenDecl); !is || g.Tok != token.IMPORT {
			ast.PreorderStack(d, nil, func(n ast.Node, above []ast.Node) bool {
				m.visit(n, above)
				return true
			})
		}
	}
	return m.found
}

// offset is where in the source a position is.
func (m *mutator) offset(p token.Pos) int { return m.positions.Position(p).Offset }

func (m *mutator) textOf(n ast.Node) string { return m.source[m.offset(n.Pos()):m.offset(n.End())] }

// add adds the mutant that has another text from one position to another, and shows it with
// the node around.
func (m *mutator) add(around ast.Node, from, to token.Pos, text string) {
	start, end := m.offset(around.Pos()), m.offset(around.End())
	at, rest := m.offset(from), m.offset(to)
	change := m.source[start:end] + " becomes " + m.source[start:at] + text + m.source[rest:end]
	if start == at && end == rest && text == "" {
		change = m.source[start:end] + " is left out"
	}
	change = strings.Join(strings.Fields(change), " ")
	m.times[m.function+change]++
	if n := m.times[m.function+change]; n > 1 {
		change += fmt.Sprintf(" (%d)", n)
	}
	m.found = append(m.found, mutant{m.file, m.function, change, m.positions.Position(from).Line, m.source[:at] + text + m.source[rest:]})
}

// visit adds the mutants of a node, which is below others.
func (m *mutator) visit(n ast.Node, above []ast.Node) {
	replace := func(p token.Pos, old token.Token) {
		for _, other := range turned[old] {
			m.add(n, p, p+token.Pos(len(old.String())), other.String())
		}
	}
	switch n := n.(type) {
	case *ast.IfStmt:
		m.turn(n.Cond)
	case *ast.CaseClause:
		if s, is := above[len(above)-2].(*ast.SwitchStmt); is && s.Tag == nil {
			for _, condition := range n.List {
				m.turn(condition)
			}
		}
	case *ast.BinaryExpr:
		replace(n.OpPos, n.Op)
	case *ast.IncDecStmt:
		replace(n.TokPos, n.Tok)
	case *ast.AssignStmt:
		replace(n.TokPos, n.Tok)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			m.add(n, n.OpPos, n.X.Pos(), "")
		}
	case *ast.ExprStmt, *ast.DeferStmt, *ast.BranchStmt:
		m.add(n, n.Pos(), n.End(), "")
	case *ast.ReturnStmt:
		switch above[len(above)-2].(type) {
		case *ast.FuncDecl, *ast.FuncLit: // the last one
		default:
			m.add(n, n.Pos(), n.End(), "")
		}
	case *ast.BasicLit:
		around := above[len(above)-1]
		_, result := around.(*ast.ReturnStmt) // of which an error says that it is not used
		if value, err := strconv.ParseInt(n.Value, 0, 64); err == nil && n.Kind == token.INT && !(result && strings.HasSuffix(m.textOf(around), "err")) {
			m.add(around, n.Pos(), n.End(), fmt.Sprint(value+1))
		}
	}
}

// turn turns a condition that is not turned by its operator.
func (m *mutator) turn(condition ast.Expr) {
	switch c := condition.(type) {
	case *ast.UnaryExpr:
		return
	case *ast.BinaryExpr:
		if c.Op != token.LAND && c.Op != token.LOR {
			return
		}
	}
	m.add(condition, condition.Pos(), condition.End(), "!("+m.textOf(condition)+")")
}

// mutants returns the mutants of all files in the order in which they are tried: each file has
// its share of them from the first on, and a change of one function leaves those of others in
// their order.
func (s Suite) mutants(t *testing.T) (all []mutant) {
	place := map[string]float64{}
	for _, folder := range s.Mutated.Folders {
		files, err := filepath.Glob(filepath.Join(s.Module, folder, "*.go"))
		must(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			found := mutantsOf(t, s.Module, path.Join(folder, filepath.Base(file)))
			slices.SortFunc(found, func(a, b mutant) int { return cmp.Compare(a.draw(), b.draw()) })
			for i, m := range found {
				place[m.String()] = (float64(i) + 0.5) / float64(len(found))
			}
			all = append(all, found...)
		}
	}
	slices.SortStableFunc(all, func(a, b mutant) int { return cmp.Compare(place[a.String()], place[b.String()]) })
	return all
}

// draw is a number of the mutant, whatever the rest of the code is.
func (m mutant) draw() uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, mutantSeed, m.file, m.function, m.change)
	return mix(h.Sum64())
}

// reason is why nothing can be seen of the mutant, "" if something can.
func (s Suite) reason(m mutant) string {
	for _, e := range s.Mutated.Equivalent {
		if [3]string(e[:3]) == [3]string{m.file, m.function, m.change} {
			return e[3]
		}
	}
	return ""
}

// Mutants tries mutants: the tests of their package, or else the worlds, have to fail for all but
// those of which nothing can be seen. Without the environment variable it only checks that these
// are still in the code. It is called by TestMutants.
func (s Suite) Mutants(t *testing.T) {
	all := s.mutants(t)
	for _, e := range s.Mutated.Equivalent {
		if !slices.ContainsFunc(all, func(m mutant) bool { return [3]string(e[:3]) == [3]string{m.file, m.function, m.change} }) {
			t.Errorf("%s has no %q in %s any more: bring the list of equivalent mutants up to date", e[0], e[2], e[1])
		}
	}
	chosen := os.Getenv(mutantsVariable)
	if chosen == "" {
		return
	}
	count, err := strconv.Atoi(chosen)
	if err != nil {
		all = slices.DeleteFunc(all, func(m mutant) bool { return !strings.HasPrefix(m.String(), chosen) })
		count = len(all)
	}
	var mu sync.Mutex
	next := func() (m mutant, found bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(all) > 0 {
			m, all, found = all[0], all[1:], true
		}
		return m, found
	}
	killed := map[string]int{}
	t.Run("of", func(t *testing.T) {
		for i := range count {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				for m, found := next(); found; m, found = next() {
					if by := s.try(t, m); by != "" { // else it does not compile, and the next takes its place
						mu.Lock()
						killed[by]++
						mu.Unlock()
						return
					}
				}
			})
		}
	})
	t.Logf("mutants by what kills them: %v", killed)
	if dead := killed["tests"] + killed["worlds"]; dead < 9*killed["nothing"] {
		t.Errorf("less than 90%% of %d are killed", dead+killed["nothing"])
	}
}

// try says what kills a mutant: "tests", "worlds" or "nothing"; "" if it does not compile.
func (s Suite) try(t *testing.T, m mutant) (by string) {
	file, folder := filepath.Join(s.Module, m.file), filepath.Join(s.Module, path.Dir(m.file))
	binary, _, err := compile(t, folder, file, m.text)
	if err != nil {
		return ""
	}
	if said, err := tests(t, binary, folder, mutantLimit); err != nil {
		t.Logf("killed by tests: %s: %s", m, said)
		return "tests"
	}
	binary, out, err := compile(t, ".", file, m.text)
	if err != nil {
		t.Fatalf("%s: %v: %s", m, err, out)
	}
	if out, err = (part{first: 1, step: 1, seeds: mutantSeeds}).try(t, mutantLimit, binary, "TestWorld"); err != nil {
		t.Logf("killed by worlds: %s: %v: %s", m, err, foundBy.FindString(out))
		return "worlds"
	}
	if why := s.reason(m); why != "" {
		t.Logf("equivalent: %s: %s", m, why)
	} else {
		t.Errorf("survives: %s", m)
	}
	return "nothing"
}

// failedBy is what a test binary says of what failed.
var failedBy = regexp.MustCompile(`--- FAIL: \S+|panic: .*`)

// tests runs the tests of a package until one fails.
func tests(t *testing.T, binary, folder string, limit time.Duration) (said string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := limited(ctx, binary, "-test.short", "-test.failfast")
	c.Dir, c.Env = folder, append(os.Environ(), "TMPDIR="+t.TempDir())
	c.WaitDelay = time.Second // for children of a test
	text, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return "time", ctx.Err()
	}
	return failedBy.FindString(string(text)), err
}
