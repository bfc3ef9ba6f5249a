package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// notRun are commands that are shown but not run here, with the reason.
var notRun = map[string]string{
	"make test":  "it is what runs this test",
	"make check": "it runs make test",
	"make bench": "it takes minutes and a C++ compiler",
}

// TestShownCommands runs every command that README.md and docs show, in a
// folder that holds what a reader has, and compares what it prints with what
// is shown. A block may use what the blocks above it on its page have made.
func TestShownCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("runs make")
	}
	pages, err := filepath.Glob(moduleRoot + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	operations, err := filepath.Glob(moduleRoot + "/docs/operations/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, operations...)
	lists := listsOnS3(t)
	shown := 0
	for _, page := range append(pages, moduleRoot+"/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		folder, ports := "", ports(t)
		for _, c := range commandsShown(string(text)) {
			if folder == "" {
				folder = checkout(t)
				stopAfterwards(t, folder)
			}
			shown++
			c.text, c.output = lists.Replace(ports.Replace(c.text)), ports.Replace(c.output)
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(page), c.line), func(t *testing.T) { c.run(t, folder) })
		}
	}
	if shown == 0 {
		t.Error("no page shows a command")
	}
}

// command is a command line of a page and the output shown below it.
type command struct {
	line         int // in the page
	text, output string
}

// commandsShown finds the commands in a page's console and sh blocks: lines
// that begin with "$ ", each followed by its output.
func commandsShown(page string) (found []command) {
	inside := false
	var now *command
	for i, line := range strings.Split(page, "\n") {
		switch {
		case !inside:
			inside = line == "```console" || line == "```sh"
		case line == "```":
			inside, now = false, nil
		case strings.HasPrefix(line, "$ "):
			found = append(found, command{line: i + 1, text: line[len("$ "):]})
			now = &found[len(found)-1]
		case now == nil: // a block that shows no output
		case now.output == "" && strings.HasSuffix(now.text, `\`):
			now.text += "\n" + line
		default:
			now.output += line + "\n"
		}
	}
	return found
}

func (c command) run(t *testing.T, folder string) {
	if reason := notRun[c.text]; reason != "" {
		t.Skip(reason)
	}
	for _, tool := range []string{"curl", "sqlite3"} {
		if _, err := exec.LookPath(tool); err != nil && strings.Contains(c.text, tool+" ") {
			t.Skip(tool + " is not installed")
		}
	}
	sh := exec.CommandContext(t.Context(), "sh", "-c", c.text)
	sh.Dir = folder
	path := filepath.Join(folder, ".tools") + ":" + os.Getenv("PATH")
	sh.Env = append(withoutMake(os.Environ()), "GORACE="+hasty, "PATH="+path, "XDG_STATE_HOME="+filepath.Join(folder, ".state"))
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got, want := settled(string(out)), settled(c.output); got != want {
		t.Errorf("$ %s\n%s\nis shown as\n%s", c.text, got, want)
	}
}

// ports puts ports that are free into the place of those that pages show.
func ports(t *testing.T) *strings.Replacer {
	var pairs []string
	for _, shown := range []string{"127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.1:8090"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		pairs = append(pairs, shown, l.Addr().String())
	}
	return strings.NewReplacer(pairs...)
}

// listsOnS3 starts the store that pages name, with a list in it, and puts its
// address into the place of theirs.
func listsOnS3(t *testing.T) *strings.Replacer {
	j := newS3Job(t)
	list, err := os.ReadFile(samples + "/emails.csv")
	if err != nil {
		t.Fatal(err)
	}
	j.put("lists/emails.csv", string(list))
	t.Setenv("AWS_ENDPOINT_URL_S3", j.server.URL)
	return strings.NewReplacer("http://127.0.0.1:7070", j.server.URL)
}

// stopAfterwards stops the service that a page has started and, when one of
// its commands failed, not stopped.
func stopAfterwards(t *testing.T, folder string) {
	t.Cleanup(func() {
		text, err := os.ReadFile(filepath.Join(folder, "out/serve.pid"))
		if err != nil {
			return // none was started
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it is gone already, as a rule
	})
}

// checkout makes a folder like a checkout that was built, with this test's
// binary as the program: building it again is not what a page is tested for.
func checkout(t *testing.T) string {
	folder := t.TempDir()
	if err := copySamples(filepath.Join(folder, "testdata")); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(moduleRoot + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	leadetl, err := exec.LookPath("leadetl")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"Makefile":  string(makefile),
		".tools/go": "#!/bin/sh\n[ \"$*\" = 'build -o bin/ ./cmd/leadetl' ]\n",
	}
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, made := range []string{"bin", "out"} {
		if err := os.Mkdir(filepath.Join(folder, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(leadetl, filepath.Join(folder, "bin/leadetl")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// withoutMake is an environment without what an outer make put in it.
func withoutMake(environ []string) (left []string) {
	for _, variable := range environ {
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS") {
			left = append(left, variable)
		}
	}
	return left
}

func TestCommandsShown(t *testing.T) {
	page := "```console\n$ one\nits\noutput\n$ two \\\n  --more\n```\n\n```sh\nthree\n```\n```sql\n$ four\n```\n"
	want := []command{{2, "one", "its\noutput\n"}, {5, "two \\\n  --more", ""}}
	if got := commandsShown(page); !slices.Equal(got, want) {
		t.Errorf("commandsShown = %v, want %v", got, want)
	}
}
