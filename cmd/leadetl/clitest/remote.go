//go:build unix

package clitest

import (
	"bytes"
	"encoding/json"
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

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
)

const (
	// RemoteKey is the API key of the remote runs.
	RemoteKey = "lrk_test_CanaryOfTheKey00000000000000000"
	// RemoteSecret signs the callbacks of the remote runs.
	RemoteSecret = "whsec_Q2FuYXJ5T2ZUaGVTZWNyZXQwMDAwMDAw"
)

// StartService starts a service for a test. What it takes as the API key is
// remoteKey.
func StartService(t testing.TB, o badservice.Options) (s *badservice.Service, url string) {
	t.Helper()
	o.APIKey, o.Secret = RemoteKey, RemoteSecret
	s = badservice.New(o)
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, url
}

// RemoteJob is a run against a service, and everything it leaves: a user who
// gives the same command again and again.
type RemoteJob struct {
	testing.TB
	Folder    string // holds out and state
	In        string
	Operation string
	URL       string
	Flags     []string
	State     []string // the flags that name the state
	Store     string   // the address of its S3 store; "" for a folder
	ran       int
}

// NewRemoteJob is a run of a list, whose state is in a folder.
func NewRemoteJob(t testing.TB, operation, url, list string, flags ...string) *RemoteJob {
	t.Helper()
	j := &RemoteJob{TB: t, Folder: t.TempDir(), Operation: operation, URL: url, Flags: flags}
	j.In = j.Path("in.csv")
	j.State = []string{"--state", j.Path("state")}
	if err := os.WriteFile(j.In, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

// Path is a path in the folder of the job.
func (j *RemoteJob) Path(name string) string { return filepath.Join(j.Folder, name) }

// Args are the command's.
func (j *RemoteJob) Args(flags ...string) []string {
	args := []string{"run", j.Operation, "--in", j.In, "--out", j.Path("out"), "--resolver", j.URL}
	return LastOfEach(append(OnStore(j.Store, slices.Concat(args, j.State)...), append(j.Flags, flags...)...))
}

// LastOfEach leaves out each --set key=value whose key is set again behind it: of a flag given twice, the last
// counts.
func LastOfEach(args []string) (kept []string) {
	key := func(i int) string {
		key, _, _ := strings.Cut(args[i+1], "=")
		return key
	}
	last := map[string]int{}
	for i, arg := range args {
		if arg == "--set" {
			last[key(i)] = i
		}
	}
	for i := 0; i < len(args); i++ {
		if args[i] == "--set" && last[key(i)] != i {
			i++
			continue
		}
		kept = append(kept, args[i])
	}
	return kept
}

// Process is one run of the program.
type Process struct {
	*exec.Cmd
	Printed, Said *Output
	Gone          chan struct{}
}

// Start starts the command and returns at once.
func (j *RemoteJob) Start(flags ...string) *Process {
	j.Helper()
	j.ran++
	return StartProgram(j, j.Args(flags...)...)
}

// StartProgram starts the program, as a user with a key would, in a process
// of its own.
func StartProgram(t testing.TB, args ...string) *Process {
	t.Helper()
	return StartProgramIn(t, "", args...)
}

// StartProgramIn starts the program in a folder; "" is that of the tests.
func StartProgramIn(t testing.TB, folder string, args ...string) *Process {
	t.Helper()
	program, err := exec.LookPath("leadetl") // the test's own binary; see TestMain
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Cmd: exec.Command(program, args...), Printed: new(Output), Said: new(Output), Gone: make(chan struct{})}
	p.Env = append(os.Environ(), "GORACE="+Hasty, runcmd.APIKeyVariable+"="+RemoteKey, runcmd.CallbackSecretVariable+"="+RemoteSecret)
	p.Stdout, p.Stderr, p.Dir = p.Printed, p.Said, folder
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.Gone)
		_ = p.Wait() // its exit code is asked for
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // one that has ended already is as well
		<-p.Gone
		if log := p.Said.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			t.Errorf("leadetl %s said\n%s", strings.Join(args, " "), log)
		}
	})
	return p
}

// Code waits for the end and returns the exit code, -1 after a kill.
func (p *Process) Code() int {
	<-p.Gone
	return p.ProcessState.ExitCode()
}

// Ended reports whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.Gone:
		return true
	default:
		return false
	}
}

// Run runs the command to its end, which has to be with one of the codes.
func (j *RemoteJob) Run(want int, flags ...string) *Process {
	j.Helper()
	p := j.Start(flags...)
	if got := p.Code(); got != want {
		j.Fatalf("run %d ended with exit code %d, want %d:\n%s", j.ran, got, want, Tail(p.Said.String()))
	}
	return p
}

// Tail is the end of a long log.
func Tail(log string) string {
	const most = 4000
	if len(log) > most {
		return "…" + log[len(log)-most:]
	}
	return log
}

// Unknown are the key hashes that answers list --unknown prints.
func (j *RemoteJob) Unknown() []string {
	j.Helper()
	return KeyHashes(j.Answers("list", "--unknown", "--json"))
}

// Answers runs a command of leadetl answers on the state.
func (j *RemoteJob) Answers(args ...string) string {
	j.Helper()
	return Run(j, OnStore(j.Store, slices.Concat([]string{"answers"}, args, j.State)...)...)
}

// Keeper says where a job has its state.
type Keeper func(*RemoteJob)

// InFolder is the state folder that jobs have by themselves.
func InFolder(*RemoteJob) {}

// OnS3 starts a store, and has each job keep its state there.
func OnS3(t *testing.T) Keeper {
	t.Helper()
	server := s3test.Start(t, S3Bucket)
	jobs := 0
	return func(j *RemoteJob) {
		jobs++
		j.State, j.Store = []string{"--state", fmt.Sprintf("s3://%s/state-%d/", S3Bucket, jobs)}, server.URL
	}
}

// KeyHashes are those of a list that is printed as JSON.
func KeyHashes(list string) (hashes []string) {
	for line := range strings.Lines(list) {
		_, after, _ := strings.Cut(line, `"key_hash":"`)
		hash, _, _ := strings.Cut(after, `"`)
		hashes = append(hashes, hash)
	}
	return hashes
}

// Dataset is what a folder holds: rows with their cells as text.
type Dataset struct {
	Names []string
	Rows  [][]string
}

// ReadDataset reads the parts of a dataset in order.
func ReadDataset(t testing.TB, folder string) *Dataset {
	t.Helper()
	RequireWhole(t, folder)
	return ReadParts(t, folder)
}

// ReadAsked reads what the resolvers of a dataset say.
func ReadAsked(t testing.TB, folder string) *Dataset {
	t.Helper()
	return ReadParts(t, filepath.Join(folder, sinks.AskedFolder))
}

// ReadParts reads the parts in a folder, which may be one of a dataset's.
func ReadParts(t testing.TB, folder string) *Dataset {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(folder, "part-*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(parts)
	d := &Dataset{}
	for _, name := range parts {
		table, err := readParquet(name)
		if err != nil {
			t.Fatal(err)
		}
		d.Names = d.Names[:0]
		for _, f := range table.Schema().Fields() {
			d.Names = append(d.Names, f.Name)
		}
		d.add(table)
		table.Release()
	}
	return d
}

func (d *Dataset) add(table arrow.Table) {
	records := array.NewTableReader(table, -1)
	defer records.Release()
	for records.Next() {
		r := records.Record()
		for i := range int(r.NumRows()) {
			row := make([]string, r.NumCols())
			for c := range row {
				row[c] = "null"
				if !r.Column(c).IsNull(i) {
					row[c] = r.Column(c).ValueStr(i)
				}
			}
			d.Rows = append(d.Rows, row)
		}
	}
}

// Column is the place of a column.
func (d *Dataset) Column(t testing.TB, name string) int {
	t.Helper()
	i := slices.Index(d.Names, name)
	if i < 0 {
		t.Fatalf("no column %s in %v", name, d.Names)
	}
	return i
}

// Count counts the rows with a value in a column.
func (d *Dataset) Count(t testing.TB, column, value string) (n int) {
	t.Helper()
	c := d.Column(t, column)
	for _, row := range d.Rows {
		if row[c] == value {
			n++
		}
	}
	return n
}

// RequireSameRows compares two datasets in every column but those.
func RequireSameRows(t testing.TB, got, want *Dataset, but ...string) {
	t.Helper()
	if !slices.Equal(got.Names, want.Names) || len(got.Rows) != len(want.Rows) {
		t.Errorf("%d rows of %v, want %d of %v", len(got.Rows), got.Names, len(want.Rows), want.Names)
		return
	}
	different := 0
	for i := range got.Rows {
		for c, name := range got.Names {
			if got.Rows[i][c] == want.Rows[i][c] || slices.Contains(but, name) {
				continue
			}
			if different++; different <= 10 {
				t.Errorf("row %d, %s: %q, want %q", i+1, name, got.Rows[i][c], want.Rows[i][c])
			}
		}
	}
	if different > 10 {
		t.Errorf("%d cells differ", different)
	}
}

// RequireSameFiles compares the parts and rejects of two datasets byte for
// byte.
func RequireSameFiles(t testing.TB, got, want string) {
	t.Helper()
	files := func(folder string) map[string]string {
		found := map[string]string{}
		for _, pattern := range []string{"part-*.parquet", "_rejects/part-*.parquet"} {
			names, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				relative, _ := filepath.Rel(folder, name)
				found[relative] = string(data)
			}
		}
		return found
	}
	these, those := files(got), files(want)
	if len(these) != len(those) || len(those) == 0 {
		t.Errorf("%d files, want %d", len(these), len(those))
	}
	for name, data := range those {
		if these[name] != data {
			t.Errorf("%s is not the same: %d bytes, want %d", name, len(these[name]), len(data))
		}
	}
}

// List is an input of profile addresses, and what is to be known of it.
type List struct {
	CSV       string
	Rows      int // well-formed lines
	malformed int
	Rejected  int      // rows with an invalid identifier
	Keys      []string // distinct, in canonical form
}

// ProfileList makes a list of so many lines: among them keys that occur several
// times in several spellings, rows that cannot be asked about, and lines that
// are no rows.
func ProfileList(lines int) *List {
	l := &List{}
	var b strings.Builder
	b.WriteString("id,network_url\n")
	spellings := []string{
		"https://network.example/in/canary-%d", "HTTPS://WWW.NETWORK.EXAMPLE/IN/CANARY-%d/", "network.example/in/Canary-%d?trk=x&utm_source=y#about",
		`"  https://m.network.example/in/canary-%d/details/  "`, "https://de.network.example/in/canary%%2D%d/en",
	}
	for i := range lines {
		switch {
		case i%401 == 400:
			b.WriteString("no row\n")
			l.malformed++
			continue
		case i%97 == 96:
			wrong := []string{"", "nobody", "https://network.example/company/canary", "null"}
			fmt.Fprintf(&b, "%d,%s\n", i, wrong[i%len(wrong)])
			l.Rejected++
		case i%31 == 30: // letters beyond ASCII, as they are and encoded
			key := fmt.Sprintf("network.example/in/ångström-canary-%d", i/62)
			spelled := key
			if i%62 != 30 {
				spelled = strings.ReplaceAll(strings.ReplaceAll(key, "å", "%C3%85"), "ö", "%c3%b6")
			}
			fmt.Fprintf(&b, "%d,https://%s\n", i, spelled)
			l.Keys = append(l.Keys, key)
		case i%4 == 3: // a twin of a row before it, near or far
			n := i - 1 - i*7%min(i, 900)
			if n < 0 {
				n = 0
			}
			fmt.Fprintf(&b, "%d,"+spellings[i%len(spellings)]+"\n", i, n)
			l.Keys = append(l.Keys, "network.example/in/canary-"+strconv.Itoa(n))
		default:
			fmt.Fprintf(&b, "%d,"+spellings[i%2]+"\n", i, i)
			l.Keys = append(l.Keys, "network.example/in/canary-"+strconv.Itoa(i))
		}
		l.Rows++
	}
	slices.Sort(l.Keys)
	l.Keys = slices.Compact(l.Keys)
	l.CSV = b.String()
	return l
}

// KillsWanted is how many kills have to hit: LEADETL_KILLS, or a few. Under -short the
// test is skipped: killed programs are long.
func KillsWanted(t testing.TB, few int) int {
	t.Helper()
	if testing.Short() {
		t.Skip("kills the program again and again")
	}
	text := os.Getenv("LEADETL_KILLS")
	if text == "" {
		return few
	}
	kills, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return kills
}

// Kill ends the process the hard way; hit says that it had not ended by
// itself.
func (p *Process) Kill() (hit bool) {
	_ = p.Process.Signal(syscall.SIGKILL)
	return p.Code() == -1
}

// AddressList makes a list of so many IP addresses, all different and all to
// be asked about.
func AddressList(rows int) string {
	var b strings.Builder
	b.WriteString("ip\n")
	for i := range rows {
		fmt.Fprintf(&b, "11.2.%d.%d\n", i/250, i%250+1)
	}
	return b.String()
}

// Within runs the command in this process, to its end.
func (j *RemoteJob) Within(want int) (said string) {
	j.Helper()
	key := j.Path("key")
	if err := os.WriteFile(key, []byte(RemoteKey), 0o600); err != nil {
		j.Fatal(err)
	}
	var out, err bytes.Buffer
	if got := program.Execute(j.Context(), j.Args("--api-key-file", key), strings.NewReader(""), &out, &err); got != want {
		j.Fatalf("the run ended with exit code %d, want %d:\n%s", got, want, Tail(err.String()))
	}
	return err.String()
}

// CallsOf tells the calls about a key.
func CallsOf(s *badservice.Service, key string) (told []string) {
	for id, calls := range s.Calls() {
		for _, c := range calls {
			if c.Key == key {
				told = append(told, fmt.Sprintf("%s %s", id, c.Fate))
			}
		}
	}
	return told
}

// Paid are the credits that a dataset's rows have cost. Rows that share an
// answer share what it cost.
func (d *Dataset) Paid(t testing.TB, leads ...string) (sum int) {
	t.Helper()
	credits, answer := d.Column(t, "credits"), []int{d.Column(t, "resolution_id")}
	for _, name := range leads {
		answer = append(answer, d.Column(t, name))
	}
	seen := map[string]bool{}
	for _, row := range d.Rows {
		var of []string
		for _, c := range answer {
			of = append(of, row[c])
		}
		n, err := strconv.Atoi(row[credits])
		if err != nil && row[credits] != "null" {
			t.Fatal(err)
		}
		if name := strings.Join(of, " "); !seen[name] {
			seen[name] = true
			sum += n
		}
	}
	return sum
}

// Waited is p when it has ended.
func (p *Process) Waited() *Process {
	p.Code()
	return p
}

// LastReport is the report in a dataset's folder.
func LastReport(t *testing.T, out string) (r report.Report) {
	t.Helper()
	data, err := os.ReadFile(out + "/_report.json")
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// FreeAddress is a loopback address without a listener.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
