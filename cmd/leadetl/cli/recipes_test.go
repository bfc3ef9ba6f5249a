package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const moduleRoot = "../../.."

// killed is the exit code that shells give a process that was killed, such as by
// want of memory.
const killed = 137

// ends are the exit codes that a recipe has to know.
func ends() (codes []int) {
	for _, row := range exitTable {
		codes = append(codes, row.code)
	}
	return append(codes, killed)
}

// isRetried reports whether the scheduler tries again: where exitTable says so,
// and after a kill.
func isRetried(code int) bool {
	return code == killed || slices.ContainsFunc(exitTable, func(row exitMeaning) bool { return row.code == code && strings.HasPrefix(row.next, "the scheduler ") })
}

// notRetried are the failures that need a person.
func notRetried() (codes []int) {
	for _, row := range exitTable {
		if row.code != ExitDone && !isRetried(row.code) {
			codes = append(codes, row.code)
		}
	}
	return codes
}

func readPage(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join(moduleRoot, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// crontab is that of docs/nightly.md.
func crontab(t *testing.T) string {
	_, rest, found := strings.Cut(readPage(t, "docs/nightly.md"), "\n```crontab\n")
	text, _, ended := strings.Cut(rest, "\n```")
	if !found || !ended {
		t.Fatal("docs/nightly.md has no crontab")
	}
	return text + "\n"
}

// codesAfter are the numbers behind a word.
func codesAfter(text, pattern string) (codes []int) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		for _, word := range regexp.MustCompile(`\d+`).FindAllString(m[1], -1) {
			code, _ := strconv.Atoi(word)
			codes = append(codes, code)
		}
	}
	return codes
}

// The codes after which a scheduler must not try again are those of the table.
func TestRecipesKnowTheExitCodes(t *testing.T) {
	for name, got := range map[string][]int{
		"deploy/cronjob.yaml":            codesAfter(readPage(t, "deploy/cronjob.yaml"), `(?m)action: FailJob\n(?:.*\n){3}\s+values: \[(.*)\]$`),
		"deploy/cronjob-volumes.yaml":    codesAfter(readPage(t, "deploy/cronjob-volumes.yaml"), `operator: In, values: \[(.*)\]`),
		"deploy/leadetl-nightly.service": codesAfter(readPage(t, "deploy/leadetl-nightly.service"), `(?m)^RestartPreventExitStatus=(.*)$`),
	} {
		if !slices.Equal(got, notRetried()) {
			t.Errorf("%s does not retry after %v, want %v", name, got, notRetried())
		}
	}
	if strings.Contains(readPage(t, "deploy/leadetl-nightly.service"), "SuccessExitStatus") {
		t.Error("a failure is a success of deploy/leadetl-nightly.service")
	}
}

// stub is a program in place of leadetl that writes its arguments to calls and
// ends with the code in the file code.
func stub(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "leadetl")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%[1]s/calls\nread code <%[1]s/code\nexit $code\n", folder)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// call runs a command without any environment but env, while leadetl ends with
// leadetlCode. It returns the exit code and what leadetl was called with.
func call(t *testing.T, folder, command string, leadetlCode int, env ...string) (code int, calls []string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "code"), []byte(fmt.Sprintln(leadetlCode)), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(folder, "calls"))
	out, err := exec.Command("env", append(append([]string{"-i"}, env...), "/bin/sh", "-c", command)...).CombinedOutput()
	if ended, ok := err.(*exec.ExitError); ok {
		code = ended.ExitCode()
	} else if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	text, _ := os.ReadFile(filepath.Join(folder, "calls"))
	return code, strings.Split(strings.TrimSpace(string(text)), "\n")
}

// The lines of the crontab work without HOME and PATH. A night keeps its date and
// its file until it is done, and is tried again only where the table says so.
func TestCronRecipe(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock")
	}
	lines := regexp.MustCompile(`(?m)^[\d*/ ]+  leadetl  (.*)$`).FindAllStringSubmatch(crontab(t), -1)
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, end := range ends() {
		folder := t.TempDir()
		env := "LEADETL=" + stub(t, folder)
		if err := os.Mkdir(filepath.Join(folder, "nights"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "nightly.sh"), []byte(readPage(t, "testdata/nightly.sh")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "env"), []byte("# of the job\nLEADETL_OUT='s3://leads/hems/'\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var commands []string
		for _, line := range lines {
			commands = append(commands, strings.NewReplacer(`\%`, "%", "/srv/lists", folder).Replace(line[1]))
		}
		before := time.Now().UTC().Format(time.DateOnly)
		code, calls := call(t, folder, commands[0], end, env)
		night := time.Now().UTC().Format(time.DateOnly)
		if night != before {
			t.Skip("midnight passed")
		}
		want := "run --job nightly.yaml --out s3://leads/hems/ --partition-by dt=" + night + " --state state --quiet"
		if code != end || !slices.Equal(calls, []string{want}) {
			t.Errorf("exit code %d, calls %q, want %d and %q", code, calls, end, want)
		}
		due, _ := filepath.Glob(filepath.Join(folder, "nights/*"))
		if (len(due) == 0) != (end == ExitDone) {
			t.Errorf("after exit code %d these nights are due: %q", end, due)
		}
		if len(due) == 1 { // another day comes
			other := filepath.Join(folder, "nights/2020-01-02")
			if err := os.Rename(due[0], other); err != nil {
				t.Fatal(err)
			}
			more := ""
			if !isRetried(end) { // a person has to say what happens
				if code, calls = call(t, folder, commands[1], ExitDone, env); code != ExitDone || calls[0] != "" {
					t.Errorf("after exit code %d a night is tried again: exit code %d, calls %q", end, code, calls)
				}
				text := []string{"\n", "anew", "anew\n"}[end%3]
				if more = strings.TrimSpace(text); more != "" {
					more = " --overwrite"
				}
				if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if code, calls = call(t, folder, commands[1], ExitDone, env); code != ExitDone || len(calls) != 1 || !strings.Contains(calls[0], "dt=2020-01-02 ") || !strings.HasSuffix(calls[0], "--quiet"+more) {
				t.Errorf("a retry: exit code %d, calls %q", code, calls)
			}
		}
		if code, calls = call(t, folder, commands[1], ExitDone, env); code != ExitDone || calls[0] != "" {
			t.Errorf("nothing is due: exit code %d, calls %q", code, calls)
		}
	}
}

// The DAG's command tries again where the table says so, with the same date.
func TestAirflowRecipe(t *testing.T) {
	_, command, _ := strings.Cut(readPage(t, "deploy/nightly_dag.py"), `COMMAND = """`)
	command, _, found := strings.Cut(command, `"""`)
	if !found || !strings.Contains(readPage(t, "deploy/nightly_dag.py"), "retries=0") {
		t.Fatalf("no command without retries in\n%s", readPage(t, "deploy/nightly_dag.py"))
	}
	command = strings.NewReplacer("{{ ds }}", "2026-11-20", "sleep 900", ":").Replace(command)
	for _, end := range ends() {
		folder := t.TempDir()
		stub(t, folder)
		code, calls := call(t, folder, command, end, "PATH="+folder+":/usr/bin:/bin")
		tries := 1
		if isRetried(end) {
			tries = 10
		}
		if code != end || len(calls) != tries || len(slices.Compact(calls)) != 1 || !strings.Contains(calls[0], " --out /datasets/hems --partition-by dt=2026-11-20 ") {
			t.Errorf("exit code %d: %d after %d tries %q, want %d tries", end, code, len(calls), calls, tries)
		}
	}
}

// TestMappedAirflowRecipe runs deploy/scale_dag.py, with small stand-ins for the
// parts of Airflow that it uses.
func TestMappedAirflowRecipe(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	for name, test := range map[string]struct {
		survey string
		code   int
		want   []string // after survey
	}{
		"two windows": {`{"windows":2}`, ExitDone, []string{"part --index 0", "part --index 1", "finish"}},
		"finished":    {`{"windows":0}`, ExitDone, []string{"finish"}},
		"try again":   {"", ExitTryAgain, []string{"AirflowException"}},
		"a person":    {"", ExitUsage, []string{"AirflowFailException"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range map[string]string{
				"leadetl":               fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s/calls\nif [ $1 = survey ]; then echo '%s'; exit %d; fi\n", folder, test.survey, test.code),
				"pendulum.py":           "def datetime(*a, **k): return a\n",
				"airflow/__init__.py":   "",
				"airflow/exceptions.py": "class AirflowException(Exception): pass\nclass AirflowFailException(Exception): pass\n",
				"airflow/sdk.py":        airflowSDK,
				"dag.py":                readPage(t, "deploy/scale_dag.py"),
			} {
				path := filepath.Join(folder, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command("env", "-i", "PATH="+folder+":/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", python, filepath.Join(folder, "dag.py")).CombinedOutput()
			if failed := test.code != ExitDone; (err != nil) != failed || failed && !strings.Contains(string(out), "airflow.exceptions."+test.want[0]+":") {
				t.Fatalf("%v\n%s", err, out)
			}
			calls, err := os.ReadFile(filepath.Join(folder, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			const flags = " --job emails.yaml --out s3://leads/hems --partition-by dt=2026-11-20"
			want := "survey --json" + flags + "\n"
			if test.code == ExitDone {
				for _, call := range test.want {
					want += call + flags + "\n"
				}
			}
			if string(calls) != want {
				t.Errorf("calls\n%swant\n%s", calls, want)
			}
		})
	}
}

// airflowSDK runs tasks when they are called, for one day.
const airflowSDK = `
def dag(**settings):
    return lambda define: define

class Done:
    def __init__(self, value): self.value = value
    def __rshift__(self, later): return later

def task(**settings):
    def named(do):
        class Task:
            def __call__(self): return Done(do(ds="2026-11-20"))
            def expand(self, index): return Done([do(index=i, ds="2026-11-20") for i in index.value])
        return Task()
    return named
`

// The date in Kubernetes is that of the Job, whenever its pod starts.
func TestKubernetesRecipe(t *testing.T) {
	scheduled := time.Date(2026, 11, 20, 2, 30, 0, 0, time.UTC).Unix() / 60
	_, command, _ := strings.Cut(readPage(t, "deploy/cronjob-volumes.yaml"), "args:\n                - |\n")
	command, _, found := strings.Cut(command, "\n              env:")
	if !found {
		t.Fatal("no args")
	}
	for _, c := range []struct {
		name string
		want string // "" for none
	}{
		{fmt.Sprintf("leads-%d", scheduled), "2026-11-20"},
		{fmt.Sprintf("leads-of-2026-%d", scheduled), "2026-11-20"},
		{"leads-2026-11-19", "2026-11-19"},
		{"leads-manual", ""},
		{"leads-manually", ""},
		{"leads-20", ""},
		{"", ""},
	} {
		folder := t.TempDir()
		stub(t, folder)
		code, calls := call(t, folder, command, ExitTryAgain, "PATH="+folder+":/usr/bin:/bin", "JOB_NAME="+c.name)
		if c.want == "" && (code != ExitUsage || calls[0] != "") {
			t.Errorf("%q: exit code %d, calls %q, want none", c.name, code, calls)
		}
		if c.want != "" && (code != ExitTryAgain || len(calls) != 1 || !strings.Contains(calls[0], " --out /datasets/leads --partition-by dt="+c.want+" ")) {
			t.Errorf("%q: exit code %d, calls %q", c.name, code, calls)
		}
	}
	for _, page := range []string{readPage(t, "deploy/cronjob-volumes.yaml"), readPage(t, "deploy/cronjob.yaml")} {
		if !strings.Contains(page, "batch.kubernetes.io/job-name") {
			t.Errorf("the Job's name is not known in\n%s", page)
		}
	}
}

// The unit that fixes the date is not the one that is restarted.
func TestSystemdRecipe(t *testing.T) {
	m := regexp.MustCompile(`(?m)^ExecStart=/bin/sh -c '(.*)'$`).FindStringSubmatch(readPage(t, "deploy/leadetl-night.service"))
	if m == nil {
		t.Fatal("leadetl-night.service starts no shell")
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "nights"), 0o700); err != nil {
		t.Fatal(err)
	}
	command := strings.NewReplacer("$$", "$", "%%", "%").Replace(m[1])
	if code, _ := call(t, folder, "cd "+folder+" && "+command, ExitDone); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if due, _ := filepath.Glob(filepath.Join(folder, "nights/20??-??-??")); len(due) != 1 {
		t.Errorf("nights %q", due)
	}
	if nightly := readPage(t, "deploy/leadetl-nightly.service"); strings.Contains(nightly, "date ") || !strings.Contains(nightly, "\nRestart=on-failure\n") {
		t.Errorf("leadetl-nightly.service is\n%s", nightly)
	}
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		out, _ := exec.Command(analyze, "calendar", "*-*-* 02:30:00 UTC").CombinedOutput()
		if !strings.Contains(string(out), "Next elapse") && !strings.Contains(string(out), "Normalized form") {
			t.Errorf("the timer's time: %s", out)
		}
	}
}

// TestUnitsAreHardened: every unit gives up what the service gives up, and may write
// where it works.
func TestUnitsAreHardened(t *testing.T) {
	settings := func(unit string) []string {
		return regexp.MustCompile(`(?m)^(?:NoNew|Capab|Protect|Private|Restrict(?:Addr|Name)|Lock|Memory|SystemCall).*$`).FindAllString(readPage(t, unit), -1)
	}
	given := func(unit, setting string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^` + setting + `=(.*)$`).FindStringSubmatch(readPage(t, unit))
		if m == nil {
			t.Fatalf("%s has no %s", unit, setting)
		}
		return m[1]
	}
	want := settings("deploy/leadetl-serve.service")
	if len(want) < 14 {
		t.Fatalf("the service gives up %q alone", want)
	}
	for _, unit := range []string{"deploy/leadetl-night.service", "deploy/leadetl-nightly.service", "deploy/leadetl-backup.service"} {
		got := settings(unit)
		for i, s := range got {
			if strings.HasPrefix(s, "RestrictAddressFamilies=") && strings.HasSuffix(s, "AF_UNIX") { // fewer are as well
				got[i] = "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX"
			}
		}
		if !slices.Equal(got, want) || given(unit, "UMask") != "0077" {
			t.Errorf("%s gives up\n%q, and the service\n%q", unit, got, want)
		}
		if folder := given(unit, "ReadWritePaths"); !strings.Contains(given(unit, "ExecStart"), folder) && folder != given(unit, "WorkingDirectory") {
			t.Errorf("%s may write in %s, where it does not work", unit, folder)
		}
	}
}
