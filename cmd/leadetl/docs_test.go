package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/answering"
	"github.com/leadetl/leadetl/transforms/platform"
)

// TestPageOfOperations: each operation has a section and its default price on the page of
// operations.
func TestPageOfOperations(t *testing.T) {
	page, err := os.ReadFile(clitest.ModuleRoot + "/docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	costs := answering.DefaultCosts()
	for _, op := range resolution.OperationNames() {
		if !strings.Contains(string(page), "\n## "+op+"\n") {
			t.Errorf("docs/operations.md has no section about %s", op)
		}
		row := regexp.MustCompile(`\| \[` + op + `\]\(.*\| (\d+) [^|]* \|\n`).FindStringSubmatch(string(page))
		if row == nil || row[1] != fmt.Sprint(costs[op]) {
			t.Errorf("docs/operations.md does not say that %s costs %d credits: %q", op, costs[op], row)
		}
	}
}

// TestScheduledCommands: what the recipes of docs/nightly.md have schedulers call has flags that
// there are.
func TestScheduledCommands(t *testing.T) {
	for _, recipe := range []string{"deploy/cronjob-volumes.yaml", "deploy/nightly_dag.py"} {
		text, err := os.ReadFile(filepath.Join(clitest.ModuleRoot, recipe))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^ +(?:exec )?leadetl ([^|\n]*)`).FindStringSubmatch(string(text))
		if m == nil {
			t.Errorf("%s calls no leadetl", recipe)
			continue
		}
		line := strings.NewReplacer(`"dt=$night"`, "dt=2026-11-20", "{{ ds }}", "2026-11-20").Replace(m[1])
		c, args, err := program.NewRoot(cli.Streams{}).Find(strings.Fields(line))
		if err != nil || c.Name() != "run" {
			t.Errorf("leadetl %s: %v", line, err)
			continue
		}
		if err := c.ParseFlags(args); err != nil {
			t.Errorf("leadetl %s: %v", line, err)
		}
	}
}

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n.*?```")
	shownFlag    = regexp.MustCompile(`(?:^|[\s` + "`" + `(\[|])--([a-z][a-z0-9-]+)`)
)

// TestNamedFlags: the flags that pages name outside of the commands that are
// run exist.
func TestNamedFlags(t *testing.T) {
	known := map[string]bool{
		"help": true, "help-all": true,
		"catalog": true, "warehouse": true, "property": true, // of leadetl-iceberg
		"for": true, "from": true, "namespace": true, // of kubectl
		"strip-components": true, // of tar
		"ignore-missing":   true, // of sha256sum
	}
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(program.NewRoot(cli.Streams{}))
	checked := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shownFlag.FindAllStringSubmatch(consoleBlock.ReplaceAllString(string(text), ""), -1) {
			if checked++; !known[m[1]] {
				t.Errorf("%s names --%s, which is no flag", page, m[1])
			}
		}
	}
	if checked == 0 {
		t.Error("no page names a flag")
	}
}

// pages are the pages of the repository.
func pages(t *testing.T) (all []string) {
	for _, pattern := range []string{"/*.md", "/docs/*.md", "/docs/*/*.md"} {
		found, err := filepath.Glob(clitest.ModuleRoot + pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)?(#[^)\s]*)?\)`)

// TestLinks: a page that one of ours links to is there, and so is its heading.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			there, err := os.ReadFile(to)
			if errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if m[2] != "" && err == nil && !slices.Contains(headings(string(there)), m[2][1:]) {
				t.Errorf("%s links to %s%s, and there is no such heading", page, m[1], m[2])
			}
		}
	}
}

// headings are the names by which a page's headings are linked to.
func headings(page string) (names []string) {
	for line := range strings.Lines(page) {
		if title, found := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); found && strings.HasPrefix(line, "#") {
			names = append(names, strings.ReplaceAll(regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-"))
		}
	}
	return names
}

// TestShownProvider: the job, the entry and its documented answers that pages show are those that
// their commands use.
func TestShownProvider(t *testing.T) {
	for name, on := range map[string]string{
		"providers/acme.yaml": "docs/reference/entries.md", "providers/acme.answers.yaml": "docs/reference/entries.md", "resolvers.yaml": "docs/resolvers.md",
	} {
		page, err := os.ReadFile(filepath.Join(clitest.ModuleRoot, on))
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(clitest.ModuleRoot + "/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "```yaml\n"+string(file)+"```\n") {
			t.Errorf("%s does not show testdata/%s as it is", on, name)
		}
	}
}

// The rules for a bucket that docs/s3.md names are JSON. Other tests use the policies beside them.
func TestLifecycleRules(t *testing.T) {
	text, err := os.ReadFile(clitest.ModuleRoot + "/deploy/s3-lifecycle.json")
	if err != nil || !json.Valid(text) {
		t.Errorf("%v, no JSON:\n%s", err, text)
	}
}

// TestPageOfSettings keeps docs/reference/keys.md what leadetl help settings prints.
func TestPageOfSettings(t *testing.T) {
	requireTable(t, "docs/reference/keys.md", "`leadetl help settings` prints this page.\n\n```text\n"+clitest.RunRaw(t, "help", "settings")+"```\n")
}

// TestPageOfReasons: docs/reference/reasons.md names every reason that code declares.
func TestPageOfReasons(t *testing.T) {
	page, err := os.ReadFile(clitest.ModuleRoot + "/docs/reference/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(clitest.ModuleRoot + "/transforms/*/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"internal/rows/batch.go", "resolution/embedded/engine.go", "pipeline/outcome/reasons.go"} {
		files = append(files, filepath.Join(clitest.ModuleRoot, name))
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		reasons := regexp.MustCompile(`\t\w+ += (?:errors\.New\()?"([a-z_]+)"`).FindAllStringSubmatch(string(code), -1)
		if len(reasons) == 0 {
			t.Errorf("%s declares no reason", file)
		}
		for _, m := range reasons {
			if !regexp.MustCompile("`" + m[1] + "[`:]").Match(page) {
				t.Errorf("docs/reference/reasons.md does not name %s of %s", m[1], file)
			}
		}
	}
}

// TestPageOfPlatforms keeps docs/reference/platforms.md what the table of platforms says, and the table on
// docs/audiences.md, too.
func TestPageOfPlatforms(t *testing.T) {
	var page, whose strings.Builder
	for i := range platform.All {
		p := &platform.All[i]
		fmt.Fprintf(&page, "## %s\n\n%s.", p.Name, p.Title)
		for _, r := range p.Reservations {
			fmt.Fprintf(&page, "\n\n**Reservation**: %s.", r)
		}
		page.WriteString("\n\n| column | has | |\n|---|---|---|\n")
		for _, c := range p.Columns {
			has, hashed := string(c.Field), ""
			switch {
			case c.Always != "":
				has = c.Always
			case has != "":
				has = "`" + has + "`"
			}
			if c.Hashed {
				hashed = "SHA-256"
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", c.Header, has, hashed)
		}
		page.WriteString("\n| | rule | page | date |\n|---|---|---|---|\n")
		rule := func(of string, r platform.Rule) {
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", of, r.Text, r.Source, r.When())
		}
		for _, m := range p.Mails {
			rule("email", m.Rule)
		}
		for _, n := range p.Numbers {
			rule("phone", n.Rule)
		}
		for _, r := range p.Rules {
			rule("", r)
		}
		if p.Whose.Text != "" {
			rule("whose data", p.Whose)
			fmt.Fprintf(&whose, "| `%s` | %s | %s, %s |\n", p.Name, p.Whose.Text, p.Whose.Source, p.Whose.When())
		}
		page.WriteString("\n")
	}
	requireTable(t, "docs/reference/platforms.md", strings.TrimSuffix(page.String(), "\n"))
	text, err := os.ReadFile(clitest.ModuleRoot + "/docs/audiences.md")
	if err != nil || !strings.Contains(string(text), "|---|---|---|\n"+whose.String()) {
		t.Errorf("docs/audiences.md does not have (%v)\n%s", err, whose.String())
	}
}
