//go:build unix

package main

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
	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline/report"
)

const (
	// remoteKey is the API key of the remote runs.
	remoteKey = "lrk_test_CanaryOfTheKey00000000000000000"
	// remoteSecret signs the callbacks of the remote runs.
	remoteSecret = "whsec_Q2FuYXJ5T2ZUaGVTZWNyZXQwMDAwMDAw"
)

// badly starts a service for a test. What it takes as the API key is
// remoteKey.
func badly(t testing.TB, o badservice.Options) (s *badservice.Service, url string) {
	t.Helper()
	o.APIKey, o.Secret = remoteKey, remoteSecret
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

// remoteJob is a run against a service, and everything it leaves: a user who
// gives the same command again and again.
type remoteJob struct {
	testing.TB
	folder    string // holds out and state
	in        string
	operation string
	url       string
	flags     []string
	state     []string // the flags that name the state
	ran       int
}

func newRemoteJob(t testing.TB, operation, url, list string, flags ...string) *remoteJob {
	t.Helper()
	j := &remoteJob{TB: t, folder: t.TempDir(), operation: operation, url: url, flags: flags}
	j.in = j.path("in.csv")
	j.state = []string{"--state", j.path("state")}
	if err := os.WriteFile(j.in, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *remoteJob) path(name string) string { return filepath.Join(j.folder, name) }

// args are the command's.
func (j *remoteJob) args(flags ...string) []string {
	args := []string{"run", j.operation, "--in", j.in, "--out", j.path("out"), "--resolver", j.url}
	return slices.Concat(args, j.state, j.flags, flags) // of a flag given twice, the last counts
}

// process is one run of the program.
type process struct {
	*exec.Cmd
	printed, said *output
	gone          chan struct{}
}

// start starts the command and returns at once.
func (j *remoteJob) start(flags ...string) *process {
	j.Helper()
	j.ran++
	return startProgram(j, j.args(flags...)...)
}

// startProgram starts the program, as a user with a key would, in a process
// of its own.
func startProgram(t testing.TB, args ...string) *process {
	t.Helper()
	return startProgramIn(t, "", args...)
}

// startProgramIn starts the program in a folder; "" is that of the tests.
func startProgramIn(t testing.TB, folder string, args ...string) *process {
	t.Helper()
	program, err := exec.LookPath("leadetl") // the test's own binary; see TestMain
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(program, args...), printed: new(output), said: new(output), gone: make(chan struct{})}
	p.Env = append(os.Environ(), "GORACE="+hasty, runcmd.APIKeyVariable+"="+remoteKey, runcmd.CallbackSecretVariable+"="+remoteSecret)
	p.Stdout, p.Stderr, p.Dir = p.printed, p.said, folder
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		_ = p.Wait() // its exit code is asked for
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // one that has ended already is as well
		<-p.gone
		if log := p.said.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			t.Errorf("leadetl %s said\n%s", strings.Join(args, " "), log)
		}
	})
	return p
}

// code waits for the end and returns the exit code, -1 after a kill.
func (p *process) code() int {
	<-p.gone
	return p.ProcessState.ExitCode()
}

// ended reports whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// run runs the command to its end, which has to be with one of the codes.
func (j *remoteJob) run(want int, flags ...string) *process {
	j.Helper()
	p := j.start(flags...)
	if got := p.code(); got != want {
		j.Fatalf("run %d ended with exit code %d, want %d:\n%s", j.ran, got, want, tail(p.said.String()))
	}
	return p
}

// tail is the end of a long log.
func tail(log string) string {
	const most = 4000
	if len(log) > most {
		return "…" + log[len(log)-most:]
	}
	return log
}

// unknown are the key hashes that answers list --unknown prints.
func (j *remoteJob) unknown() []string {
	j.Helper()
	return keyHashes(j.answers("list", "--unknown", "--json"))
}

// answers runs a command of leadetl answers on the state.
func (j *remoteJob) answers(args ...string) string {
	j.Helper()
	return leadetl(j, slices.Concat([]string{"answers"}, args, j.state)...)
}

// keeper says where a job has its state.
type keeper func(*remoteJob)

// inFolder is the state folder that jobs have by themselves.
func inFolder(*remoteJob) {}

// onS3 starts a store, and has each job keep its state there.
func onS3(t *testing.T) keeper {
	t.Helper()
	server := s3test.Start(t, s3Bucket)
	jobs := 0
	return func(j *remoteJob) {
		jobs++
		j.state = []string{"--state", fmt.Sprintf("s3://%s/state-%d/", s3Bucket, jobs), "--s3-endpoint", server.URL, "--s3-path-style"}
	}
}

// keyHashes are those of a list that is printed as JSON.
func keyHashes(list string) (hashes []string) {
	for line := range strings.Lines(list) {
		_, after, _ := strings.Cut(line, `"key_hash":"`)
		hash, _, _ := strings.Cut(after, `"`)
		hashes = append(hashes, hash)
	}
	return hashes
}

// dataset is what a folder holds: rows with their cells as text.
type dataset struct {
	names []string
	rows  [][]string
}

// readDataset reads the parts of a dataset in order.
func readDataset(t testing.TB, folder string) *dataset {
	t.Helper()
	requireWhole(t, folder)
	parts, err := filepath.Glob(filepath.Join(folder, "part-*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(parts)
	d := &dataset{}
	for _, name := range parts {
		table, err := readParquet(name)
		if err != nil {
			t.Fatal(err)
		}
		d.names = d.names[:0]
		for _, f := range table.Schema().Fields() {
			d.names = append(d.names, f.Name)
		}
		d.add(table)
		table.Release()
	}
	return d
}

func (d *dataset) add(table arrow.Table) {
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
			d.rows = append(d.rows, row)
		}
	}
}

// column is the place of a column.
func (d *dataset) column(t testing.TB, name string) int {
	t.Helper()
	i := slices.Index(d.names, name)
	if i < 0 {
		t.Fatalf("no column %s in %v", name, d.names)
	}
	return i
}

// count counts the rows with a value in a column.
func (d *dataset) count(t testing.TB, column, value string) (n int) {
	t.Helper()
	c := d.column(t, column)
	for _, row := range d.rows {
		if row[c] == value {
			n++
		}
	}
	return n
}

// requireSameRows compares two datasets in every column but those.
func requireSameRows(t testing.TB, got, want *dataset, but ...string) {
	t.Helper()
	if !slices.Equal(got.names, want.names) || len(got.rows) != len(want.rows) {
		t.Errorf("%d rows of %v, want %d of %v", len(got.rows), got.names, len(want.rows), want.names)
		return
	}
	different := 0
	for i := range got.rows {
		for c, name := range got.names {
			if got.rows[i][c] == want.rows[i][c] || slices.Contains(but, name) {
				continue
			}
			if different++; different <= 10 {
				t.Errorf("row %d, %s: %q, want %q", i+1, name, got.rows[i][c], want.rows[i][c])
			}
		}
	}
	if different > 10 {
		t.Errorf("%d cells differ", different)
	}
}

// requireSameFiles compares the parts and rejects of two datasets byte for
// byte.
func requireSameFiles(t testing.TB, got, want string) {
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

// list is an input of profile addresses, and what is to be known of it.
type list struct {
	csv       string
	rows      int // well-formed lines
	malformed int
	rejected  int      // rows with an invalid identifier
	keys      []string // distinct, in canonical form
}

// profileList makes a list of so many lines: among them keys that occur several
// times in several spellings, rows that cannot be asked about, and lines that
// are no rows.
func profileList(lines int) *list {
	l := &list{}
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
			l.rejected++
		case i%31 == 30: // letters beyond ASCII, as they are and encoded
			key := fmt.Sprintf("network.example/in/ångström-canary-%d", i/62)
			spelled := key
			if i%62 != 30 {
				spelled = strings.ReplaceAll(strings.ReplaceAll(key, "å", "%C3%85"), "ö", "%c3%b6")
			}
			fmt.Fprintf(&b, "%d,https://%s\n", i, spelled)
			l.keys = append(l.keys, key)
		case i%4 == 3: // a twin of a row before it, near or far
			n := i - 1 - i*7%min(i, 900)
			if n < 0 {
				n = 0
			}
			fmt.Fprintf(&b, "%d,"+spellings[i%len(spellings)]+"\n", i, n)
			l.keys = append(l.keys, "network.example/in/canary-"+strconv.Itoa(n))
		default:
			fmt.Fprintf(&b, "%d,"+spellings[i%2]+"\n", i, i)
			l.keys = append(l.keys, "network.example/in/canary-"+strconv.Itoa(i))
		}
		l.rows++
	}
	slices.Sort(l.keys)
	l.keys = slices.Compact(l.keys)
	l.csv = b.String()
	return l
}

// killsWanted is how many kills have to hit: LEADETL_KILLS, or a few. Under -short the
// test is skipped: killed programs are long.
func killsWanted(t testing.TB, few int) int {
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

// kill ends the process the hard way; hit says that it had not ended by
// itself.
func (p *process) kill() (hit bool) {
	_ = p.Process.Signal(syscall.SIGKILL)
	return p.code() == -1
}

// addressList makes a list of so many IP addresses, all different and all to
// be asked about.
func addressList(rows int) string {
	var b strings.Builder
	b.WriteString("ip\n")
	for i := range rows {
		fmt.Fprintf(&b, "11.2.%d.%d\n", i/250, i%250+1)
	}
	return b.String()
}

// within runs the command in this process, to its end.
func (j *remoteJob) within(want int) (said string) {
	j.Helper()
	key := j.path("key")
	if err := os.WriteFile(key, []byte(remoteKey), 0o600); err != nil {
		j.Fatal(err)
	}
	var out, err bytes.Buffer
	if got := program.Execute(j.Context(), j.args("--api-key-file", key), strings.NewReader(""), &out, &err); got != want {
		j.Fatalf("the run ended with exit code %d, want %d:\n%s", got, want, tail(err.String()))
	}
	return err.String()
}

// callsOf tells the calls about a key.
func callsOf(s *badservice.Service, key string) (told []string) {
	for id, calls := range s.Calls() {
		for _, c := range calls {
			if c.Key == key {
				told = append(told, fmt.Sprintf("%s %s", id, c.Fate))
			}
		}
	}
	return told
}

// paid are the credits that a dataset's rows have cost. Rows that share an
// answer share what it cost.
func (d *dataset) paid(t testing.TB, leads ...string) (sum int) {
	t.Helper()
	credits, answer := d.column(t, "credits"), []int{d.column(t, "resolution_id")}
	for _, name := range leads {
		answer = append(answer, d.column(t, name))
	}
	seen := map[string]bool{}
	for _, row := range d.rows {
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

// waited is p when it has ended.
func (p *process) waited() *process {
	p.code()
	return p
}

// lastReport is the report in a dataset's folder.
func lastReport(t *testing.T, out string) (r report.Report) {
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

// freeAddress is a loopback address without a listener.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
