package worldtest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// bad is a seed that breaks a promise, of those that follow a base.
const bad = 5

// TestWorld is of worlds that live two lives, and of which one breaks a promise at night. TestNight
// runs it.
func TestWorld(t *testing.T) {
	s := Suite{Live: func(t *testing.T, w *World, _ string, _ Limits) (wrong []string, lives int) {
		w.Begin(t.Context(), 0)
		w.Note("lives")
		if w.seed > seedsOfBase && w.seed%seedsOfBase == bad {
			wrong = []string{"a promise is broken"}
		}
		return wrong, 2
	}}
	s.World(t, 10)
}

// TestNight: a night tries the seeds of its base, says how many lives they lived, and fails with the
// command that repeats what it found. It ends between two seeds when its time is over.
func TestNight(t *testing.T) {
	night := func(settings ...string) (out string, failed bool) {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWorld$", "-test.v")
		c.Env = append(os.Environ(), settings...)
		text, err := c.CombinedOutput()
		return string(text), err != nil
	}
	const repeat = "LEADETL_WORLD_SEED=20261128000000005 go test -count=1 -v -run 'TestWorld$' ./internal/testkit/worldtest\n"
	for _, test := range []struct {
		name     string
		settings []string
		failed   bool
		says     []string
	}{
		{"no finding", []string{"LEADETL_WORLD_SEEDS=4", "LEADETL_WORLD_BASE=20261128"}, false,
			[]string{"the base of the seeds is 20261128: BASE=20261128 repeats them", "in all, of base 20261128: 4 seeds, 8 lives, 0 findings in "}},
		{"a finding", []string{"LEADETL_WORLD_SEEDS=11", "LEADETL_WORLD_BASE=20261128"}, true,
			[]string{repeat, "seed 20261128000000005: a promise is broken", "in all, of base 20261128: 11 seeds, 22 lives, 1 findings in "}},
		{"a finding is repeated", []string{"LEADETL_WORLD_SEED=20261128000000005"}, true,
			[]string{"1 0 0s lives", repeat, "seed 20261128000000005: a promise is broken", "1 seeds, 2 lives, 1 findings"}},
		{"another base", []string{"LEADETL_WORLD_SEEDS=3", "LEADETL_WORLD_BASE=7"}, false, []string{"from seed 7000000001: ", "in all, of base 7: 3 seeds"}},
		{"no base", []string{"LEADETL_WORLD_SEEDS=3"}, false, []string{"from seed 1: ", "in all, of base 0: 3 seeds"}},
		{"no number", []string{"LEADETL_WORLD_SEEDS=many"}, true, []string{`LEADETL_WORLD_SEEDS is "many", and must be a number up to 999999999`}},
		{"too large a base", []string{"LEADETL_WORLD_SEEDS=3", "LEADETL_WORLD_BASE=99999999999"}, true, []string{"LEADETL_WORLD_BASE is "}},
	} {
		out, failed := night(test.settings...)
		if failed != test.failed {
			t.Errorf("%s: failed is %t: %s", test.name, failed, out)
		}
		for _, says := range test.says {
			if !strings.Contains(out, says) {
				t.Errorf("%s: it does not say %q: %s", test.name, says, out)
			}
		}
	}

	began := time.Now()
	out, failed := night("LEADETL_WORLD_SEEDS=999999999", "LEADETL_WORLD_SECONDS=1")
	c := tallyIn(out[strings.LastIndex(out, "in all"):])
	if failed || c.seeds == 0 || c.lives != 2*c.seeds || time.Since(began) < time.Second {
		t.Errorf("in %s %+v: %s", time.Since(began), c, out)
	}
}

// TestNightlyWorkflow: deploy/github-nightly.yml lets all worlds live an hour together, with seeds of
// the day, and keeps what make printed if it fails.
func TestNightlyWorkflow(t *testing.T) {
	const root = "../../.."
	text, err := os.ReadFile(root + "/deploy/github-nightly.yml")
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		Uses, Run, Shell, If string
		With                 map[string]any
	}
	var workflow struct {
		On struct {
			Schedule []struct{ Cron string }
		}
		Jobs map[string]struct {
			Minutes int `yaml:"timeout-minutes"`
			Steps   []step
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	job := workflow.Jobs["world"]
	at := slices.IndexFunc(job.Steps, func(s step) bool { return strings.HasPrefix(s.Run, "make ") })
	if at < 0 || at+2 != len(job.Steps) || len(workflow.On.Schedule) != 1 || job.Minutes <= 60 {
		t.Fatalf("%+v", workflow)
	}
	lives, keeps := job.Steps[at], job.Steps[at+1]
	command, file, piped := strings.Cut(lives.Run, " 2>&1 | tee ")
	if !piped || lives.Shell != "bash" || !strings.HasPrefix(keeps.Uses, "actions/upload-artifact@") || keeps.If != "failure()" || keeps.With["path"] != file {
		t.Errorf("%+v, and then %+v", lives, keeps)
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("NOT RUN: make is not installed")
	}
	makes := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-n"}, strings.Fields(command)[1:]...)...)
	makes.Dir = root
	out, err := makes.CombinedOutput()
	day := time.Now().UTC()
	base := fmt.Sprintf("LEADETL_WORLD_BASE=(%s|%s) ", day.Format("20060102"), day.Add(-time.Hour).Format("20060102"))
	worlds := len(regexp.MustCompile(` \./\S+`).FindAll(out, -1))
	if want := fmt.Sprintf(`%sLEADETL_WORLD_SEEDS=999999999 LEADETL_WORLD_SECONDS=\$\(\(60 \* 60 / %d\)\) `, base, worlds); worlds < 2 || err != nil || !regexp.MustCompile(want).Match(out) {
		t.Errorf("%s prints, %v:\n%s\nwant %s", command, err, out, want)
	}
}
