//go:build unix

package s3

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// steppedJob is a run whose steps are taken by processes that share S3 alone.
type steppedJob struct {
	*clitest.S3Job
	flags []string
}

func newSteppedJob(t *testing.T) *steppedJob {
	j := clitest.NewS3Job(t)
	var big strings.Builder
	big.WriteString("id,email\n")
	for i := range 90_000 {
		switch {
		case i%1000 == 999:
			fmt.Fprintf(&big, "%d,malformed,line\n", i)
		case i%1000 == 500:
			fmt.Fprintf(&big, "%d,\"two\nlines%d@example.com\"\n", i, i)
		default:
			fmt.Fprintf(&big, "%d,somebody.with.a.long.name.%d@example.com\n", i, i)
		}
	}
	j.Put("lists/a.csv", big.String())
	j.Put("lists/b.csv.gz", packedText(t, "id,email\n1,x@example.com\nmalformed\n"))
	job := j.Path("job.yaml")
	text := "operation: email_to_hem\nin: s3://leads/lists/\nrows_per_part: 15000\nmax_rejects: 90%\ns3_endpoint: " + j.Proxy.URL + "\ns3_path_style: true\n"
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &steppedJob{j, []string{"--job", job, "--out", "s3://leads/out", "--state", "s3://leads/state"}}
}

func (j *steppedJob) start(step string, more ...string) *clitest.Process {
	return clitest.StartProgram(j, slices.Concat([]string{step}, j.flags, more)...)
}

// do takes a step to its end, and returns what it printed.
func (j *steppedJob) do(want int, step string, more ...string) string {
	j.Helper()
	p := j.start(step, more...)
	if got := p.Code(); got != want {
		j.Fatalf("%s %v: exit code %d, want %d: %s", step, more, got, want, clitest.Tail(p.Said.String()))
	}
	return p.Printed.String() + p.Said.String()
}

// TestStepsAsProcesses makes a dataset in steps, with a process that is killed,
// and each step at least twice. It is that of one process, byte for byte.
func TestStepsAsProcesses(t *testing.T) {
	j := newSteppedJob(t)
	if said := j.do(cli.ExitUsage, "part"); !strings.Contains(said, "begin with leadetl survey") {
		t.Errorf("a part before the survey: %s", said)
	}
	var survey struct{ Files, Rows, Malformed, Parts, Windows int }
	for range 2 {
		if err := json.Unmarshal([]byte(j.do(cli.ExitDone, "survey", "--window-mib", "1", "--json")), &survey); err != nil {
			t.Fatal(err)
		}
	}
	if survey.Files != 2 || survey.Rows != 89_911 || survey.Malformed != 91 || survey.Parts != 6 || survey.Windows < 3 {
		t.Fatalf("%+v", survey)
	}
	// A process is killed while it makes its second part.
	j.Proxy.Do(func(r *http.Request) s3test.Fault {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/part-00001.parquet") {
			return s3test.Fault{Kind: s3test.Delayed, Delay: 10 * time.Second}
		}
		return s3test.Fault{}
	})
	p := j.start("part")
	clitest.Until(t, "a part is made", func() bool { _, err := os.Stat(j.Object("out/part-00000.parquet")); return err == nil || p.Ended() })
	if !p.Kill() {
		t.Fatalf("it ended: %s", clitest.Tail(p.Said.String()))
	}
	j.Proxy.Do(nil)
	if said := j.do(cli.ExitTryAgain, "finish"); !strings.Contains(said, "parts are missing, of windows [") {
		t.Errorf("finished too early: %s", said)
	}
	for index := range survey.Windows + 1 {
		t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(index))
		twin := j.start("part", "--quiet")
		said := j.do(cli.ExitDone, "part")
		if code := twin.Code(); code != cli.ExitDone {
			t.Errorf("window %d at the same time: exit code %d: %s", index, code, clitest.Tail(twin.Said.String()))
		}
		if want := fmt.Sprintf("window %d of %d", index, survey.Windows); index < survey.Windows && !strings.Contains(said, want) ||
			index == survey.Windows && !strings.Contains(said, "nothing to do") {
			t.Errorf("window %d: %s", index, said)
		}
	}
	if said := j.do(cli.ExitDone, "finish"); !strings.Contains(said, "89,911") {
		t.Errorf("finish says %s", said)
	}
	j.requireOneProcess()
	if said := j.do(cli.ExitDone, "survey", "--json"); said != `{"files":2,"windows":0}`+"\n" {
		t.Errorf("a survey of a finished dataset says %s", said)
	}
	for _, step := range []string{"survey", "part", "finish"} {
		j.do(cli.ExitDone, step)
	}
	j.do(cli.ExitDone, "run")
}

// requireOneProcess compares the dataset with that of one process, and looks for
// objects that are left.
func (j *steppedJob) requireOneProcess() {
	j.Helper()
	j.do(cli.ExitDone, "run", "--out", j.Path("one"), "--state", j.Path("state"))
	want, got := clitest.Files(j, j.Path("one")), clitest.Files(j, j.Object("out"))
	maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasPrefix(name, ".") })
	if !maps.Equal(got, want) {
		j.Errorf("%v\nnot %v, or other bytes", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	err := filepath.WalkDir(j.Object("state"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != "format.json" && filepath.Base(filepath.Dir(path)) != "nights" { // finished datasets are remembered
			j.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		j.Error(err)
	}
	if _, err := os.Stat(j.Object("out/_lock")); err == nil {
		j.Error("the dataset is still locked")
	}
}

// TestStepsOfN: N processes make all windows, whatever their number.
func TestStepsOfN(t *testing.T) {
	j := newSteppedJob(t)
	for index := range 2 {
		j.do(cli.ExitDone, "survey", "--index", fmt.Sprint(index), "--of", "2", "--window-mib", "1")
	}
	t.Setenv("AWS_BATCH_JOB_ARRAY_SIZE", "2")
	for index := range 2 {
		t.Setenv("AWS_BATCH_JOB_ARRAY_INDEX", fmt.Sprint(index))
		j.do(cli.ExitDone, "part")
	}
	j.do(cli.ExitDone, "finish")
	j.requireOneProcess()
}

func TestStepsRefused(t *testing.T) {
	folder := t.TempDir()
	list := filepath.Join(folder, "a.csv")
	if err := os.WriteFile(list, []byte("email\nx@example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s3 := []string{"--in", list, "--out", "s3://leads/out/", "--state", "s3://leads/state/"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append([]string{"part", "ip_to_company", "--resolver", "https://leads.example"}, s3...), "use leadetl run with --state s3://leads/state/"},
		{append([]string{"survey", "email_to_hem", "--in", list, "--out", "s3://leads/out/"}, "--state", folder), "give --state s3://bucket/prefix/"},
		{append([]string{"finish", "email_to_hem", "--in", list, "--out", folder}, "--state", "s3://leads/state/"), "give --out s3://bucket/prefix/"},
		{append([]string{"part", "email_to_hem", "--of", "3"}, s3...), "--of goes with --index"},
		{append([]string{"part", "email_to_hem", "--index", "3", "--of", "3"}, s3...), "numbers begin at 0"},
		{append([]string{"part", "email_to_hem", "--index", "-1"}, s3...), "--index is -1"},
		{append([]string{"survey", "email_to_hem", "--window-mib", "0"}, s3...), "--window-mib is 0"},
		{append([]string{"part", "email_to_hem", "--set", "metrics_listen=127.0.0.1:0"}, s3...), "are for leadetl run"},
	} {
		p := clitest.StartProgram(t, c.args...)
		if code := p.Code(); code != cli.ExitUsage || !strings.Contains(p.Said.String(), c.want) {
			t.Errorf("%v: exit code %d: %s", c.args, code, clitest.Tail(p.Said.String()))
		}
	}
	t.Setenv("SLURM_ARRAY_TASK_ID", "x")
	p := clitest.StartProgram(t, append([]string{"part", "email_to_hem"}, s3...)...)
	if code := p.Code(); code != cli.ExitUsage || !strings.Contains(p.Said.String(), "SLURM_ARRAY_TASK_ID") {
		t.Errorf("an invalid number: exit code %d: %s", code, clitest.Tail(p.Said.String()))
	}
}

func packedText(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
