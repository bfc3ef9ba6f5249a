package arch

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestOneOrder: every run asks an order, and what differs where that has a single resolver is in
// pipeline/order/one.go. Elsewhere few lines ask whether it has one or several. Columns of answers
// and operations are rows of tables, and nobody else names them.
func TestOneOrder(t *testing.T) {
	for _, c := range []struct {
		what, pattern, in, but string
		most                   int
	}{
		{"asks in pipeline/order whether there is one resolver", `\bIsOne\(\)`, "pipeline/order/", "pipeline/order/one.go", 5},
		{"asks elsewhere whether there is one resolver", `\bIsOne\(\)`, "", "pipeline/order/", 3},
		{"knows a run without an order", `\.Order [!=]= nil|[rR]un\.(Remote|Resolver|Searcher)\b`, "", "-", 0},
		{"names a column of answers that resolution/values has", `seniority|Seniority|year_founded|YearFounded`, "", "-", 0},
		{"names an operation to tell it from others", `resolution\.(EmailTo|NetworkTo|IPTo|Enrichment|Deanonym|KeywordTo)`, "pipeline/", "pipeline/columns/blocks.go", 0},
		{"asks by nil whether a step is paid, not with Step.IsPaid", `\.Remote [!=]= nil`, "pipeline/", "pipeline/order/order.go", 4},
		{"knows a buyer or flags of several resolvers", `\.Total [!=]= nil|remote\.several\b`, "", "-", 0},
	} {
		pattern := regexp.MustCompile(c.pattern)
		var found []string
		for _, folder := range []string{"pipeline", "cmd"} {
			tree := os.DirFS("../..")
			err := fs.WalkDir(tree, folder, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || !strings.HasPrefix(name, c.in) || strings.HasPrefix(name, c.but) {
					return err
				}
				source, err := fs.ReadFile(tree, name)
				for line := range strings.Lines(string(source)) {
					if pattern.MatchString(line) {
						found = append(found, name+": "+strings.TrimSpace(line))
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(found) > c.most {
			t.Errorf("%s: %d lines, and %d are allowed:\n%s", c.what, len(found), c.most, strings.Join(found, "\n"))
		}
	}
}

// TestMethods: no type has so many methods that it is about several things.
func TestMethods(t *testing.T) {
	const most = 33
	method := regexp.MustCompile(`(?m)^func \(\w* *\*?(\w+)(?:\[[^]]*\])?\) `)
	counts := map[string]int{}
	for _, folder := range []string{"pipeline", "resolution", "internal", "sinks", "sources", "transforms", "cmd"} {
		err := fs.WalkDir(os.DirFS("../.."), folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/testkit/") {
				return err
			}
			source, err := fs.ReadFile(os.DirFS("../.."), name)
			for _, m := range method.FindAllStringSubmatch(string(source), -1) {
				counts[path.Dir(name)+"."+m[1]]++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for of, n := range counts {
		if n > most {
			t.Errorf("%s has %d methods, and %d are allowed", of, n, most)
		}
	}
}
