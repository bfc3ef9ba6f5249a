//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline/journal"
)

var oldData = clitest.Samples + "/old"

// oldService is the name of the service in the stored answers of the old runs.
const oldService = "http://leads.example"

// oldRuns are the runs whose state is in testdata/old. The first has finished, the
// others were killed while their calls were open.
var oldRuns = []oldRun{
	{"enrichment", "profiles", []string{"--network-hosts", "network.example"}},
	{"network_to_hem", "parked", []string{"--network-hosts", "network.example"}},
	{"keyword_to_lead", "searches", []string{"--as-of", "2026-11-20", "--limit", "5"}},
	{"ip_to_company", "ips", []string{"--rows-per-part", "8", "--concurrency", "4"}},
}

// oldHEMs is the command of the dataset hems.
var oldHEMs = []string{
	"run", "email_to_hem", "--in", "lists/emails.csv", "--out", "hems", "--state", "state", "--directory", "imported",
	"--hem-profiles", "uid2,google", "--rows-per-part", "6", "--quiet",
}

// oldRun is a run of the list lists/LIST.csv to the dataset LIST.
type oldRun struct {
	operation, list string
	flags           []string
}

// oldPlace has the files of testdata/old, in a folder where commands run, or in
// the bucket of a store.
type oldPlace struct {
	testing.TB
	folder string
	server *s3test.Server // nil without a bucket
	url    string         // of the service
}

// name is what commands call a file or folder of the place.
func (o *oldPlace) name(of string) string {
	if o.server != nil {
		return "s3://" + clitest.S3Bucket + "/" + of
	}
	return of
}

// path is where a file of the place is on this disk.
func (o *oldPlace) path(of string) string {
	if o.server != nil {
		return filepath.Join(o.server.Dir, clitest.S3Bucket, of)
	}
	return filepath.Join(o.folder, of)
}

func (o *oldPlace) state() []string {
	flags := []string{"--state", o.name("state")}
	if o.server != nil {
		flags = append(flags, "--s3-endpoint", o.server.URL, "--s3-path-style")
	}
	return flags
}

// args are those of a command, run or plan.
func (o *oldPlace) args(command string, r oldRun, flags ...string) []string {
	args := []string{command, r.operation, "--in", o.name("lists/" + r.list + ".csv"), "--out", o.name(r.list), "--resolver", o.url, "--service-name", oldService, "--quiet"}
	return slices.Concat(args, o.state(), r.flags, flags)
}

func (o *oldPlace) start(args ...string) *clitest.Process {
	o.Helper()
	return clitest.StartProgramIn(o, o.folder, args...)
}

// output is what a command prints that has to end with a certain exit code.
func (o *oldPlace) output(code int, args ...string) string {
	o.Helper()
	p := o.start(args...)
	if got := p.Code(); got != code {
		o.Fatalf("leadetl %s ended with exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, clitest.Tail(p.Said.String()))
	}
	return p.Printed.String()
}

// answers is what leadetl answers prints about the state.
func (o *oldPlace) answers(args ...string) string {
	o.Helper()
	return o.output(0, slices.Concat([]string{"answers"}, args, o.state())...)
}

// load puts the files of testdata/old/NAME to the place, with their lists, as a run
// that was killed left them.
func (o *oldPlace) load(name string) {
	o.Helper()
	o.put(filepath.Join(oldData, "input"))
	o.put(filepath.Join(oldData, name))
	// Git does not keep when a list was changed, and a journal is found by the path of
	// its dataset.
	journals, _ := filepath.Glob(o.path("state/runs/*/journal*"))
	manifests, _ := filepath.Glob(o.path("*/_manifest.json"))
	for _, path := range append(journals, manifests...) {
		if info, err := os.Stat(path); err == nil && info.IsDir() { // on S3
			path = filepath.Join(path, "0000000000.jsonl")
		}
		file, err := os.Open(path)
		if err != nil {
			o.Fatal(err)
		}
		var begun journal.Header
		err = json.NewDecoder(file).Decode(&begun)
		file.Close()
		if err != nil {
			o.Fatal(err)
		}
		for _, in := range begun.Inputs {
			if err := os.Chtimes(o.path(strings.TrimPrefix(in.URI, o.name(""))), in.ModifiedAt, in.ModifiedAt); err != nil {
				o.Fatal(err)
			}
		}
		if begun.Out == "" || o.server != nil {
			continue
		}
		to, err := journal.NewFolder(o.path("state"), o.path(begun.Out))
		if err != nil {
			o.Fatal(err)
		}
		if err := os.Rename(filepath.Dir(path), filepath.Dir(to.String())); err != nil {
			o.Fatal(err)
		}
	}
	o.age()
}

// put copies a folder to the place.
func (o *oldPlace) put(from string) {
	o.Helper()
	var store *objects.Store
	if o.server != nil {
		store = objects.New(o.Context(), objects.Options{Endpoint: o.server.URL, PathStyle: true, GiveUpAfter: time.Minute})
	}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if store == nil || strings.HasPrefix(name, "lists/") {
			return errors.Join(os.MkdirAll(filepath.Dir(o.path(name)), 0o700), os.WriteFile(o.path(name), data, 0o600))
		}
		_, err = store.Put(o.Context(), objects.Location{Bucket: clitest.S3Bucket, Key: filepath.ToSlash(name)}, objects.ContentOf(data, ""))
		return err
	})
	if err != nil {
		o.Fatal(err)
	}
}

// age makes the leases of the place look as if a machine that has died had them.
func (o *oldPlace) age() {
	o.Helper()
	leases, _ := filepath.Glob(o.path("state/lease/*"))
	past := time.Now().Add(-time.Hour)
	for _, lease := range leases {
		if err := os.Chtimes(lease, past, past); err != nil {
			o.Fatal(err)
		}
	}
}

// killed kills a command again and again, later each time, as it reads what an
// earlier program has left. What it does is not known; that nothing is lost by it is.
func (o *oldPlace) killed(args ...string) {
	o.Helper()
	for after := 20 * time.Millisecond; after < 120*time.Millisecond; after += 20 * time.Millisecond {
		p := o.start(args...)
		kill := time.AfterFunc(after, func() { _ = p.Process.Kill() })
		p.Code()
		kill.Stop()
		o.age()
	}
}

// plan is what leadetl plan says about a run. If this program makes other datasets
// of the same settings than the old one, so that it refuses to continue one, it has
// to say how to go on, and flags do that.
func (o *oldPlace) plan(r oldRun) (calls map[string]int, flags []string) {
	o.Helper()
	p := o.start(o.args("plan", r, "--json", "--fail-on", "never")...)
	if p.Code() == cli.ExitUsage {
		if said := p.Said.String(); !strings.Contains(said, "version of the ") || !strings.Contains(said, "--overwrite") {
			o.Errorf("%s is refused, and the reason or the way out is not said: %s", r.list, said)
		}
		flags = []string{"--overwrite"}
		p = o.start(o.args("plan", r, "--json", "--fail-on", "never", "--overwrite")...)
	}
	var plan struct {
		Complete bool
		Calls    struct{ Stored, Unknown, Parked, Calls, Failed, Awaited int }
	}
	code := p.Code()
	if err := json.Unmarshal([]byte(p.Printed.String()), &plan); code != cli.ExitDone || err != nil {
		o.Fatalf("plan of %s: exit code %d: %s", r.list, code, clitest.Tail(p.Said.String()))
	}
	c := plan.Calls
	return map[string]int{"stored": c.Stored, "unknown": c.Unknown, "parked": c.Parked, "calls": c.Calls, "failed": c.Failed, "awaited": c.Awaited}, flags
}

// ask runs one of the old runs with a new service, which knows nothing of what the old
// one was asked, and returns the keys that it bills.
func (o *oldPlace) ask(s *badservice.Service, code int, r oldRun, flags ...string) (billed []string) {
	o.Helper()
	p := o.start(o.args("run", r, flags...)...)
	if got := p.Code(); got != code {
		o.Errorf("%s ended with exit code %d, want %d: %s", r.list, got, code, clitest.Tail(p.Said.String()))
	}
	for key, times := range s.BilledKeys() {
		if times != 1 {
			o.Errorf("%s: a key is billed %d times", r.list, times)
		}
		billed = append(billed, key)
	}
	return billed
}

// TestOldPaid: what an old program bought is not bought again, and what it had asked
// and got no answer for is not forgotten.
func TestOldPaid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"folder", "bucket"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &oldPlace{TB: t, folder: t.TempDir()}
			if name == "bucket" {
				o.server = s3test.Start(t, clitest.S3Bucket)
			}
			o.load(name)
			testOldPaid(o)
		})
	}
}

func testOldPaid(o *oldPlace) {
	o.killed(slices.Concat([]string{"answers", "forget", "--older-than", "99999d"}, o.state())...)
	o.requireStored(map[string]int{"enrichment": 9, "ip_to_company": 19}, 5, 5)
	profiles, parked, searches, ips := oldRuns[0], oldRuns[1], oldRuns[2], oldRuns[3]

	// They are found under the name of the service alone.
	for _, f := range []struct {
		resolver, operation, list string
		code                      int
		want                      string
	}{
		{"https://LEADS.example.:443/", "enrichment", "profiles", cli.ExitUsage, "9 answers of enrichment"},
		{"https://leads.example", "ip_to_company", "ips", cli.ExitUsage, "19 answers and 5 open calls of ip_to_company"},
		{"http://leads.example:8080", "keyword_to_lead", "searches", cli.ExitDone, "\"2 open calls of http://leads.example"},
	} {
		args := []string{"plan", f.operation, "--in", o.name("lists/" + f.list + ".csv"), "--out", o.name("spelled"), "--resolver", f.resolver}
		p := o.start(append(args, o.state()...)...)
		if got, said := p.Code(), p.Said.String(); got != f.code || !strings.Contains(said, f.want) || !strings.Contains(said, oldService) {
			o.Errorf("%s: exit code %d, want %d: %s", f.resolver, got, f.code, said)
		}
	}

	// The finished dataset, and another of the same answers.
	o.output(cli.ExitDone, append([]string{"verify", o.name("profiles")}, o.state()[2:]...)...)
	o.renew(func(s *badservice.Service) {
		// Keys have had the query since, so one answer was that of two people.
		want := []string{"forum.example/profile.php?id=1", "forum.example/profile.php?id=2", "pages.example/read.php?1423"}
		if plan := o.output(cli.ExitDone, o.args("plan", profiles, "--out", o.name("again"), "--json")...); !strings.Contains(plan, `"form_changed": 3,`) || !strings.Contains(plan, `"calls": 3,`) {
			o.Errorf("the plan does not say how many keys are asked again: %s", plan)
		}
		billed := o.ask(s, cli.ExitDone, profiles, "--out", o.name("again"))
		if slices.Sort(billed); !slices.Equal(billed, want) {
			o.Errorf("profiles bought again: %q, want %q", billed, want)
		}
	})

	// Of 40 addresses, 24 were asked about. One of the open calls is about a row of a
	// part that is recorded, if the old part stays.
	o.renew(func(s *badservice.Service) {
		planned, flags := o.plan(ips)
		if left := planned["stored"] + planned["unknown"] + planned["calls"]; planned["calls"] != 16 || planned["failed"] < 4 || left < 32 {
			o.Errorf("the plan of the unfinished run: %v", planned)
		}
		billed := o.ask(s, cli.ExitRejects, ips, flags...)
		if len(billed) != 16 {
			o.Errorf("%d of 16 addresses that were never asked about are billed", len(billed))
		}
		o.requireStored(map[string]int{"enrichment": 12, "ip_to_company": 35}, 5, 5)
		if billed := o.ask(s, cli.ExitDone, ips, "--retry-unknown"); len(billed) != 21 {
			o.Errorf("%d addresses are billed after the 5 unknown ones were asked about again", len(billed))
		}
	})
	o.requireStored(map[string]int{"enrichment": 12, "ip_to_company": 40}, 0, 5)

	// Calls that the service promised to answer are not made again by themselves.
	o.renew(func(s *badservice.Service) {
		hook := []string{"--callback-url", "http://127.0.0.1:9/"}
		planned, flags := o.plan(parked)
		if planned["parked"] != 3 || planned["calls"] != 0 {
			o.Errorf("the plan of parked calls: %v", planned)
		}
		if billed := o.ask(s, cli.ExitRejects, parked, append(hook, flags...)...); len(billed) > 0 {
			o.Errorf("%d parked calls are made again", len(billed))
		}
		if billed := o.ask(s, cli.ExitDone, parked, append(hook, "--retry-unknown")...); len(billed) != 3 {
			o.Errorf("%d of 3 parked calls are made again with --retry-unknown", len(billed))
		}
	})

	// The results of searches that were begun are asked for. The first run has the new
	// service begin the same searches, and no other page.
	o.renew(func(s *badservice.Service) {
		began := o.ask(s, cli.ExitBudget, searches, "--max-calls", "2", "--out", o.name("elsewhere"), "--state", filepath.Join(o.folder, "other"))
		planned, flags := o.plan(searches)
		if planned["parked"] != 2 || planned["awaited"] != 2 {
			o.Errorf("the plan of searches: %v", planned)
		}
		if billed := o.ask(s, cli.ExitBudget, searches, append(flags, "--max-calls", "2")...); len(began) != 2 || len(billed) < 2 {
			o.Errorf("%d searches were begun, and %d pages are billed", len(began), len(billed))
		}
	})
	o.requireStored(nil, 0, 0)
	for _, r := range []oldRun{profiles, parked, ips} {
		o.output(cli.ExitDone, append([]string{"verify", o.name(r.list)}, o.state()[2:]...)...)
	}
}

// renew has the runs ask a new service.
func (o *oldPlace) renew(ask func(*badservice.Service)) {
	o.Helper()
	service := badservice.DefaultOptions()
	service.Matched, service.Polls = 1, 2
	s, url := clitest.StartService(o, service)
	o.url = url
	ask(s)
}

// requireStored compares how many answers the state has, by operation, and how many
// open calls. nil is any number of answers.
func (o *oldPlace) requireStored(answers map[string]int, unknown, parked int) {
	o.Helper()
	var stat struct {
		Answers []struct {
			Operation string
			Answers   int
		}
		Open struct{ Unknown, Parked int } `json:"open_calls"`
	}
	if err := json.Unmarshal([]byte(o.answers("stat", "--json")), &stat); err != nil {
		o.Fatal(err)
	}
	got := map[string]int{}
	for _, a := range stat.Answers {
		got[a.Operation] += a.Answers
	}
	if answers != nil && !maps.Equal(got, answers) || stat.Open.Unknown != unknown || stat.Open.Parked != parked {
		o.Errorf("stored: %v, %d unknown and %d parked; want %v, %d and %d", got, stat.Open.Unknown, stat.Open.Parked, answers, unknown, parked)
	}
}

// convert imports the old directory again where this program refuses it, with the command
// that it says, and kills that before.
func (o *oldPlace) convert(directory string) {
	o.Helper()
	o.put(filepath.Join(oldData, "input/directory"))
	if err := os.CopyFS(o.path(directory), os.DirFS(filepath.Join(oldData, "directory"))); err != nil {
		o.Fatal(err)
	}
	p := o.start("directory", "stat", "--directory", directory)
	if p.Code() == cli.ExitDone {
		return
	}
	_, command, found := strings.Cut(p.Said.String(), ": leadetl directory import ")
	if p.Code() != cli.ExitUsage || !found || !strings.Contains(p.Said.String(), directory) {
		o.Fatalf("the old directory: exit code %d: %s", p.Code(), p.Said)
	}
	again := append([]string{"directory", "import"}, strings.Fields(command)...)
	o.killed(again...)
	o.output(cli.ExitDone, again...)
}

// TestOldDirectory: a directory that an old program imported is read, or refused with the
// command that imports it again; then it answers as the same import by this program.
func TestOldDirectory(t *testing.T) {
	t.Parallel()
	o := &oldPlace{TB: t, folder: t.TempDir()}
	o.put(filepath.Join(oldData, "input"))
	makeDirectory(o)
	o.convert("old")
	for _, f := range []struct {
		operation string
		flags     []string
	}{
		{"email_to_hem", []string{"--in", "lists/emails.csv"}},
		{"network_to_phone", []string{"--in", "directory/people.csv"}},
		{"enrichment", []string{"--in", "directory/people.csv"}},
		{"ip_to_company", []string{"--in", "directory/visits.csv"}},
		{"deanonymization", []string{"--in", "directory/visits.csv"}},
		{"keyword_to_lead", []string{"--keywords", "sourdough starter;used robots", "--as-of", "2026-11-08"}},
	} {
		made := func(directory string) string {
			out := directory + "-" + f.operation
			run := []string{"run", f.operation, "--directory", directory, "--out", out, "--state", "state", "--network-hosts", "network.example", "--fail-on", "never", "--quiet"}
			o.output(cli.ExitDone, append(run, f.flags...)...)
			return o.output(cli.ExitDone, "head", out, "--json", "-n", "100")
		}
		if old, now := made("old"), made("imported"); old != now || !strings.Contains(old, `"matched"`) && !strings.Contains(old, `"lead_id"`) {
			t.Errorf("%s: the old directory answers\n%s\nand the same import\n%s", f.operation, old, now)
		}
	}
}

// TestOldDataset: a dataset of an old program is read as it is, and replaced where it is
// asked for.
func TestOldDataset(t *testing.T) {
	t.Parallel()
	o := &oldPlace{TB: t, folder: t.TempDir()}
	o.put(filepath.Join(oldData, "input"))
	if err := os.CopyFS(o.path("hems"), os.DirFS(filepath.Join(oldData, "hems"))); err != nil {
		t.Fatal(err)
	}
	o.convert("imported")
	o.output(cli.ExitDone, "verify", "hems")
	if rows := strings.Count(o.output(cli.ExitDone, "head", "hems", "--json", "-n", "100"), "\n"); rows != 13 {
		t.Errorf("%d rows, want 13", rows)
	}
	o.output(cli.ExitDone, "report", "hems", "--out", "report.html")
	p := o.start(oldHEMs...)
	if code, said := p.Code(), p.Said.String(); code != cli.ExitUsage || !strings.Contains(said, "--overwrite") {
		t.Errorf("a list or rule has changed, and the run ends with %d: %s", code, said)
	}
	o.output(cli.ExitDone, "verify", "hems")
	o.output(cli.ExitDone, append(oldHEMs, "--overwrite", "--fail-on", "failed")...)
	o.output(cli.ExitDone, "verify", "hems")
}

// TestOldServed: leadetl serve continues with the state of an old one.
func TestOldServed(t *testing.T) {
	t.Parallel()
	key, err := os.ReadFile(filepath.Join(oldData, "service.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		state     string
		entries   int // of the ledger
		credits   int // that were available or reserved
		callbacks int
	}{
		{"service_ended", 12, 990, 6}, {"service_killed", 22, 979, 11},
	} {
		t.Run(f.state, func(t *testing.T) {
			t.Parallel()
			o := &oldPlace{TB: t, folder: t.TempDir()}
			o.put(filepath.Join(oldData, f.state))
			p := clitest.NewPlace(t)
			p.State = o.folder
			ledger := func() string { return p.Admin("credits", "list", "Example Rockets") }
			serve := []string{
				"serve", "--listen", "127.0.0.1:0", "--internal-listen", "none", "--state", p.State, "--directory", p.Directory, "--callback-allow", "127.0.0.0/8",
			}
			o.killed(serve...)
			before := ledger()
			if rows := strings.Count(before, "\n"); rows < f.entries {
				t.Errorf("%d entries of the ledger, want %d:\n%s", rows, f.entries, before)
			}
			s := p.Serve("--callback-allow", "127.0.0.0/8", "--retain", "results=36500d", "--retain", "delivered=36500d", "--retain", "dead=36500d")
			c := clitest.NewCaller(t, s.Public, strings.TrimSpace(string(key)))
			if a := c.Post("/lead/enrichment", clitest.AskAda); a.Status != 200 || a.Text("lead", "full_name") != "Ada Example" {
				t.Errorf("the old key: %d %s", a.Status, a.Raw)
			}
			operator := clitest.NewOperator(t, s.Internal)
			clitest.Until(t, "searches that were begun end", func() bool {
				for line := range strings.Lines(string(operator.Do("GET", "/metrics", "").Raw)) {
					if strings.HasPrefix(line, "leadetl_jobs{") && !strings.HasSuffix(line, " 0\n") {
						return false
					}
				}
				return true
			})
			s.Stop(syscall.SIGTERM)
			if after := ledger(); !strings.HasPrefix(after, before) {
				t.Errorf("the ledger was\n%s\nand is\n%s", before, after)
			}
			deliveries := p.Admin("deliveries", "list")
			if rows := strings.Count(deliveries, "msg_"); rows < f.callbacks || strings.Count(deliveries, "delivered") != 6 {
				t.Errorf("%d callbacks, want %d, 6 delivered:\n%s", rows, f.callbacks, deliveries)
			}
			if orgs := p.Admin("org", "list"); !strings.Contains(orgs, fmt.Sprintf("Example Rockets     %d       0 ", f.credits-2)) || !strings.Contains(orgs, "Placeholder Books   5 ") {
				t.Errorf("organizations:\n%s", orgs)
			}
		})
	}
}
