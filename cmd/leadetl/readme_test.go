package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// notRun are the commands that are shown but not run here, by their beginnings, with the reason.
var notRun = map[string]string{
	"git clone https://github.com/leadetl/leadetl": "CI runs it, in a clone of its checkout",
	"cd leadetl":                       "the test is in a checkout",
	"make test":                        "it is what runs this test",
	"make check":                       "it takes minutes, and checks no command",
	"make bench":                       "it takes minutes and a C++ compiler",
	"make release":                     "make release-check makes a release, and installs each of its packages",
	"minisign ":                        "there is no published release; make release-check verifies the files of one",
	"sha256sum ":                       "there is no published release; make release-check verifies the files of one",
	"kubectl ":                         "there is no cluster; the tests of deploy check its files",
	"leadetl survey --job emails.yaml": "cmd/leadetl/stories/s3/steps_test.go runs the three steps",
	"leadetl part --job emails.yaml":   "as leadetl survey",
	"leadetl finish --job emails.yaml": "as leadetl survey",
	"leadetl-iceberg out/":             "make iceberg-check runs it",
}

// TestShownCommands runs every command that README.md and docs show and
// compares its output with what is shown. All pages share one shell, one
// folder and one HOME, and come in random order: a page may use what the blocks
// above it have made, and nothing of another page.
func TestShownCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("runs make")
	}
	shown := commandPages(t)
	rand.Shuffle(len(shown), func(i, j int) { shown[i], shown[j] = shown[j], shown[i] })
	t.Logf("order of pages: %s", shown)
	s3test.Setenv(t)
	folder := checkout(t)
	stopServices(t, folder)
	shell := newShell(t, folder)
	store, started := startStore(t, shell)
	folders := []string{"run", "store"} // of make run, and of the store
	for _, page := range shown {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		ports := ports(t)
		name := strings.ToLower(strings.TrimSuffix(filepath.Base(page), ".md"))
		folders = append(folders, name)
		commands := commandsShown(string(text))
		if !startsAlone(commands, name) {
			t.Errorf("%s does not begin with a folder and a state of its own", page)
		}
		for _, c := range commands {
			if slices.Contains(started, c) {
				continue
			}
			c.text, c.output = store.Replace(ports.Replace(c.text)), ports.Replace(c.output)
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(page), c.line), func(t *testing.T) { c.run(t, shell) })
		}
	}
	requireNoOthers(t, filepath.Join(folder, "out"), folders...)
	requireNoOthers(t, filepath.Join(folder, ".home"))
	requireNoOthers(t, folder, "Makefile", "deploy", "testdata", "sample", "bin", "out", ".ci", ".tools", ".home")
}

// startsAlone says whether a page empties its own folder and names its own state
// before it calls the program.
func startsAlone(commands []command, name string) bool {
	missing := []string{
		"rm -rf out/" + name + " && mkdir -p out/" + name,
		`export PATH="$PWD/bin:$PATH" XDG_STATE_HOME="$PWD/out/` + name + `/state"`,
	}
	for _, c := range commands {
		for line := range strings.Lines(c.text) {
			if strings.HasPrefix(line, "leadetl ") && reasonNotRun(line) == "" {
				return len(missing) == 0
			}
			missing = slices.DeleteFunc(missing, func(want string) bool { return want == strings.TrimSpace(line) })
		}
	}
	return true
}

// commandPages are the pages that show commands.
func commandPages(t *testing.T) (shown []string) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if len(commandsShown(string(text))) > 0 {
			shown = append(shown, page)
		}
	}
	if len(shown) == 0 {
		t.Fatal("no page shows a command")
	}
	return shown
}

// requireNoOthers: a folder holds nothing but these names.
func requireNoOthers(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			t.Errorf("the pages left %s in %s", e.Name(), folder)
		}
	}
}

// command is what a page lets its readers run, and the output shown below it.
type command struct {
	line         int // in the page
	text, output string
}

// commandsShown finds the commands of a page: each sh block is one command, as it is
// copied whole, and a text block that is the next one is its output; in console blocks, each line
// that begins with "$ " is one, and its output follows.
func commandsShown(page string) (found []command) {
	block, below := "", false // what the current block is; whether the block above it is an sh block
	for i, line := range strings.Split(page, "\n") {
		switch {
		case block == "" && strings.HasPrefix(line, "```"):
			block = line[len("```"):]
			if block == "sh" {
				found = append(found, command{line: i + 1})
			} else if block == "text" && !below {
				block = "other"
			}
			below = false
		case line == "```":
			block, below = "", block == "sh"
		case block != "":
			found = addLine(found, block, i+1, line)
		}
	}
	return found
}

// addLine adds a line of a block to the commands found so far.
func addLine(found []command, block string, number int, line string) []command {
	if block == "console" && strings.HasPrefix(line, "$ ") {
		return append(found, command{line: number, text: line[len("$ "):]})
	}
	if len(found) == 0 {
		return found
	}
	now := &found[len(found)-1]
	switch {
	case block == "sh":
		now.text += line + "\n"
	case block == "console" && now.output == "" && strings.HasSuffix(now.text, `\`):
		now.text += "\n" + line
	case block == "console", block == "text":
		now.output += line + "\n"
	}
	return found
}

// withoutNotRun is a command without the lines that are not run here, and the reasons.
func withoutNotRun(text string) (left string, reasons []string) {
	for line := range strings.Lines(text) {
		if reason := reasonNotRun(line); reason != "" {
			reasons = append(reasons, reason)
		} else {
			left += line
		}
	}
	return left, reasons
}

// reasonNotRun says why a line is not run here, "" if it is.
func reasonNotRun(line string) string {
	for begin, reason := range notRun {
		if strings.HasPrefix(line, begin) {
			return reason
		}
	}
	return ""
}

func (c command) run(t *testing.T, shell *shell) {
	text, reasons := withoutNotRun(c.text)
	if strings.TrimSpace(text) == "" {
		t.Skip(strings.Join(reasons, "; "))
	}
	for _, tool := range []string{"curl", "sqlite3"} {
		if _, err := exec.LookPath(tool); err != nil && strings.Contains(c.text, tool+" ") {
			t.Skip(tool + " is not installed")
		}
	}
	out, code := shell.run(t, text)
	if code != "0" {
		t.Errorf("exit code %s\n%s", code, out)
	}
	if got, want := settled(out), settled(c.output); got != want {
		t.Errorf("$ %s\n%s\nis shown as\n%s", c.text, got, want)
	}
}

// shell is a reader's terminal: what a command exports is there for the next.
type shell struct {
	commands io.Writer
	output   *bufio.Reader
}

// newShell starts a shell in a folder, with a HOME below it.
func newShell(t *testing.T, folder string) *shell {
	output, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	sh := exec.Command("sh")
	sh.Dir, sh.Stdout, sh.Stderr = folder, w, w
	sh.Env = append(withoutMake(os.Environ()), "GORACE="+clitest.Hasty, "HOME="+filepath.Join(folder, ".home"), "XDG_STATE_HOME=",
		"PATH="+filepath.Join(folder, ".tools")+":"+os.Getenv("PATH"))
	commands, err := sh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		commands.Close()
		if err := sh.Wait(); err != nil {
			t.Error(err)
		}
		output.Close()
	})
	return &shell{commands: commands, output: bufio.NewReader(output)}
}

// run runs a command line and returns what it printed, and its exit code.
func (s *shell) run(t *testing.T, command string) (printed, code string) {
	const end = "end of the command: exit code "
	if _, err := fmt.Fprintf(s.commands, "{\n%s\n} < /dev/null\nprintf '\\n%s%%d\\n' $?\n", command, end); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		if err != nil {
			t.Fatalf("$ %s ended the shell: %v\n%s", command, err, &all)
		}
		if code, found := strings.CutPrefix(line, end); found {
			return strings.TrimSuffix(all.String(), "\n"), strings.TrimSpace(code)
		}
		all.WriteString(line)
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
	pairs = append(pairs, "serve --demo", "serve --demo --listen "+pairs[1]+" --internal-listen "+pairs[3])
	return strings.NewReplacer(pairs...)
}

// storeAddress is where the store of the pages listens.
const storeAddress = "127.0.0.1:7070"

// startStore runs the first commands of docs/s3.md, which start the store that all
// pages name, on a free port. It returns what puts its address into the place of
// theirs, and these commands.
func startStore(t *testing.T, shell *shell) (*strings.Replacer, []command) {
	text, err := os.ReadFile(clitest.ModuleRoot + "/docs/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	replacer := strings.NewReplacer(storeAddress, address)
	commands := commandsShown(string(text))[:3]
	for _, c := range commands {
		c.text = replacer.Replace(c.text)
		c.run(t, shell)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return replacer, commands
		}
		if time.Now().After(end) {
			t.Fatal("the store of docs/s3.md does not listen")
		}
	}
}

// stopServices stops the services that pages have started and, when one of
// their commands failed, not stopped.
func stopServices(t *testing.T, folder string) {
	t.Cleanup(func() {
		files, err := filepath.Glob(filepath.Join(folder, "out/*/*.pid"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL) // it is gone already, as a rule
		}
	})
}

// checkout makes a folder like a checkout that was built, with this test's
// binary as the program: building it again is not what a page is tested for.
func checkout(t *testing.T) string {
	folder := t.TempDir()
	testdata := filepath.Join(folder, "testdata")
	if err := os.Mkdir(testdata, 0o755); err != nil {
		t.Fatal(err)
	}
	// The pages that need no checkout have their lists from leadetl sample.
	for _, name := range []string{"finder", "providers", "resolvers.yaml"} {
		if out, err := exec.Command("cp", "-R", filepath.Join(clitest.Samples, name), testdata).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	makefile, err := os.ReadFile(clitest.ModuleRoot + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	quietly, err := os.ReadFile(clitest.ModuleRoot + "/.ci/quietly")
	if err != nil {
		t.Fatal(err)
	}
	leadetl, err := exec.LookPath("leadetl")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"Makefile":    string(makefile),
		".ci/quietly": string(quietly),
		".tools/go": "#!/bin/sh\ncase \"$*\" in\n'build -ldflags -s -w -o bin/ ./cmd/leadetl') ;;\n" +
			"'install github.com/versity/versitygw/cmd/versitygw@" + storeVersion(t) + "') ln -sf " + s3test.Program(t) + " \"$GOBIN/versitygw\" ;;\n" +
			"'build -o bin/finder ./testdata/finder') ln -sf " + finder(t) + " bin/finder ;;\n*) exit 1 ;;\nesac\n",
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
	for _, made := range []string{"bin", "out", ".home"} {
		if err := os.Mkdir(filepath.Join(folder, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(leadetl, filepath.Join(folder, "bin/leadetl")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// finder builds the stand-in for a provider that docs/resolvers.md starts.
func finder(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "finder")
	build := exec.Command("go", "build", "-o", path, "./testdata/finder")
	build.Dir = clitest.ModuleRoot
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// storeVersion is the version of the S3 server that tests run.
func storeVersion(t *testing.T) string {
	text, err := os.ReadFile(clitest.ModuleRoot + "/internal/testkit/testservers/versitygw/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(text), "github.com/versity/versitygw v")
	version, _, _ = strings.Cut(version, " ")
	return "v" + version
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
	page := "```console\n$ one\nits\noutput\n$ two \\\n  --more\n```\n\n```sh\nthree\nfour # why\n```\n\n```text\nof four\n```\n```sql\n$ five\n```\n\n```text\nalone\n```\n"
	want := []command{{2, "one", "its\noutput\n"}, {5, "two \\\n  --more", ""}, {9, "three\nfour # why\n", "of four\n"}}
	if got := commandsShown(page); !slices.Equal(got, want) {
		t.Errorf("commandsShown = %v, want %v", got, want)
	}
}
