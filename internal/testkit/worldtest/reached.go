package worldtest

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// reachedVariable is how many seeds Reached tries.
const reachedVariable = "LEADETL_WORLD_REACHED"

// Branches are rare branches of the product. Each has a name, a file, and a text that is in one place
// of it, and ends in a statement of the branch.
type Branches [][3]string

// Reach is what the worlds of a package have to reach.
type Reach struct {
	// Packages are folders of the module. Least is the share of their statements that is reached.
	Packages []string
	Least    float64
	// Rare are reached leastOften times in a night.
	Rare Branches
	// Unreached are functions that no world reaches, such as "pipeline/order/identity.go Named", with
	// the reason. It is an error if one of them is reached, or if another is not.
	Unreached map[string]string
}

const (
	leastOften = 1000
	// night is how long make world runs each night, on nightCores.
	night      = time.Hour
	nightCores = 2
)

// Reached lets worlds live in a binary that counts its statements. It shows how much of Reach.Packages
// they reach, and how often each branch. Without the environment variable it only checks that what
// Reach names is there. It is called by TestReached.
func (s Suite) Reached(t *testing.T) {
	r := s.Reach
	places := r.find(t, s.Module)
	functions := r.functions(t, s.Module)
	for name := range r.Unreached {
		if _, there := functions[name]; !there {
			t.Errorf("there is no %s", name)
		}
	}
	seeds := number(t, reachedVariable, seedsOfBase-1)
	if seeds == 0 {
		return
	}
	counts, took := r.live(t, int(seeds))
	r.checkPackages(t, counts)
	for i, b := range r.Rare {
		name, n := b[0], counts.at(places[i])
		inNight := float64(n) / took.Hours() * night.Hours() * nightCores
		if t.Logf("%9d, %9.0f in a night: %s", n, inNight, name); inNight < leastOften {
			t.Errorf("%s: reached %d times by %d seeds, which is less than %d times in a night", name, n, seeds, leastOften)
		}
	}
	r.checkFunctions(t, counts, functions)
	for _, where := range counts.unreached(s.Module, r.Packages) {
		t.Log("not reached: ", where)
	}
}

// place is a place in a file of the module.
type place struct {
	file         string
	line, column int
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

// find returns the ends of the texts of the branches.
func (r Reach) find(t *testing.T, module string) (places []place) {
	t.Helper()
	for _, b := range r.Rare {
		name, file, end := b[0], b[1], b[2]
		source, err := os.ReadFile(filepath.Join(module, file))
		must(t, err)
		text := string(source)
		if n := strings.Count(text, end); n != 1 {
			t.Errorf("%s: %s has its text %d times: bring it up to date", name, file, n)
			continue
		}
		before := text[:strings.Index(text, end)+len(end)]
		places = append(places, place{file, 1 + strings.Count(before, "\n"), len(before) - strings.LastIndex(before, "\n") - 1})
	}
	return places
}

// functions are the bodies of the functions of the packages, by their names in Reach.Unreached.
func (r Reach) functions(t *testing.T, module string) map[string]block {
	t.Helper()
	found := map[string]block{}
	for _, folder := range r.Packages {
		files, err := filepath.Glob(filepath.Join(module, folder, "*.go"))
		must(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set, name := token.NewFileSet(), path.Join(folder, filepath.Base(file))
			parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			must(t, err)
			for _, d := range parsed.Decls {
				if f, is := d.(*ast.FuncDecl); is && len(f.Body.List) > 0 {
					from, to := set.Position(f.Body.Pos()), set.Position(f.Body.End())
					found[name+" "+nameOf(f)] = block{place{name, from.Line, from.Column}, place{name, to.Line, to.Column}}
				}
			}
		}
	}
	return found
}

// nameOf is the name of a function; of a method with its type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	if generic, is := of.(*ast.IndexExpr); is {
		of = generic.X
	}
	return fmt.Sprintf("%s.%s", of, f.Name.Name)
}

// live lets worlds live, in a process for each core. It says how much time of a processor that took.
func (r Reach) live(t *testing.T, seeds int) (counts coverage, took time.Duration) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "test")
	prefix := modulePath(t)
	var packages []string
	for _, folder := range r.folders() {
		packages = append(packages, prefix+folder)
	}
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-covermode=count", "-coverpkg="+strings.Join(packages, ","), "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	counts = coverage{}
	cores, before := runtime.NumCPU(), usedByChildren(t)
	var processes sync.WaitGroup
	profiles := make([]string, cores)
	for core := range cores {
		profiles[core] = filepath.Join(t.TempDir(), "profile")
		processes.Go(func() {
			p := part{first: uint64(core + 1), step: uint64(cores), seeds: (seeds + cores - 1 - core) / cores}
			said, err := p.try(t, 30*time.Minute+time.Duration(seeds)*time.Second, binary, "TestWorld", "-test.coverprofile="+profiles[core])
			if t.Log(said); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	for _, profile := range profiles {
		counts.read(t, profile, prefix)
	}
	took = usedByChildren(t) - before
	t.Logf("%d seeds took %s of a processor", seeds, took.Round(time.Second))
	return counts, took
}

// usedByChildren is how much time of a processor the processes took that this one has waited for.
func usedByChildren(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// folders are those of the packages, and of the rare branches.
func (r Reach) folders() []string {
	all := slices.Clone(r.Packages)
	for _, b := range r.Rare {
		if folder := path.Dir(b[1]); !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	return all
}

// modulePath is the path of the module, with a slash.
func modulePath(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m").Output()
	must(t, err)
	return strings.TrimSpace(string(out)) + "/"
}

// block is some statements that run one after the other.
type block struct{ from, to place }

func (b block) has(p place) bool {
	return b.from.file == p.file && b.from.compare(p) <= 0 && p.compare(b.to) <= 0
}

// coverage is how often blocks were reached.
type coverage map[block]*struct{ statements, times int }

// read adds what a profile says.
func (c coverage) read(t *testing.T, profile, prefix string) {
	t.Helper()
	file, err := os.Open(profile)
	must(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan() // the mode
	for lines.Scan() {
		var b block
		var statements, times int
		name, rest, _ := strings.Cut(lines.Text(), ":")
		_, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column, &statements, &times)
		must(t, err)
		b.from.file = strings.TrimPrefix(name, prefix)
		b.to.file = b.from.file
		if c[b] == nil {
			c[b] = &struct{ statements, times int }{statements: statements}
		}
		c[b].times = min(c[b].times+times, math.MaxInt32)
	}
	must(t, lines.Err())
}

// at is how often the statements at a place were reached.
func (c coverage) at(p place) (times int) {
	var in block
	for b, is := range c {
		if b.has(p) && (in == block{} || in.has(b.from) && in.has(b.to)) {
			in, times = b, is.times
		}
	}
	return times
}

func (r Reach) checkPackages(t *testing.T, c coverage) {
	t.Helper()
	for _, folder := range r.Packages {
		all, reached := 0, 0
		for b, is := range c {
			if path.Dir(b.from.file) == folder {
				if all += is.statements; is.times > 0 {
					reached += is.statements
				}
			}
		}
		share := float64(reached) / float64(max(1, all))
		if t.Logf("%s: %d of %d statements are reached, %.1f%%", folder, reached, all, 100*share); share < r.Least {
			t.Errorf("%s: %.1f%% of the statements are reached, less than %.0f%%", folder, 100*share, 100*r.Least)
		}
	}
}

// checkFunctions compares the functions that are not reached with those that are said not to be.
func (r Reach) checkFunctions(t *testing.T, c coverage, functions map[string]block) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		reached := false
		for b, is := range c {
			reached = reached || is.times > 0 && functions[name].has(b.from)
		}
		if _, said := r.Unreached[name]; reached == said {
			t.Errorf("%s: that it is reached is %t, and that it is not is said: %t", name, reached, said)
		}
	}
}

// unreached are the blocks of some packages that were not reached, with their first lines.
func (c coverage) unreached(module string, packages []string) (all []string) {
	blocks := slices.SortedFunc(maps.Keys(c), func(a, b block) int { return cmp.Or(cmp.Compare(a.from.file, b.from.file), a.from.compare(b.from)) })
	for _, b := range blocks {
		if c[b].times > 0 || c[b].statements == 0 || !slices.Contains(packages, path.Dir(b.from.file)) {
			continue
		}
		text, _ := os.ReadFile(filepath.Join(module, b.from.file))
		lines := strings.Split(string(text), "\n")
		words := ""
		for at := b.from.line; at <= min(b.from.line+1, b.to.line, len(lines)); at++ {
			words += " " + strings.TrimSpace(lines[at-1])
		}
		all = append(all, fmt.Sprintf("%s:%d (%d):%s", b.from.file, b.from.line, c[b].statements, words))
	}
	return all
}
