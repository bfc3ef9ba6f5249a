//go:build unix

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
)

// TestClusterPaid buys answers on workers that are killed, put to sleep and asked to
// end. Each key is bought once, the dataset is that of one machine, offline, of a copy
// of the answers, and the Temporal server is told no key and no secret. A call that a
// kill left open is sent again under its key, or is unknown: at most --concurrency for
// each kill. Every other run has a budget first, which all its workers keep together.
//
// LEADETL_KILLS is how many kills have to hit (default 6).
func TestClusterPaid(t *testing.T) {
	const rows, concurrency = 600, 16
	o := badservice.DefaultOptions()
	o.Latency = 100 * time.Millisecond
	service, url := clitest.StartService(t, o)
	c := newCluster(t, "--resolver", url)
	random := rand.New(rand.NewPCG(clitest.S3KillSeed, 2))
	kills, asked, unknown, names := 0, 0, 0, objectNames{}
	for round, wanted := 0, clitest.KillsWanted(t, 6); round < 4 || kills < wanted; round++ {
		name, idempotent := fmt.Sprint("round-", round), round%2 == 0
		c.Put(name+"-in/list.csv", roundList(round, rows))
		flags := []string{"--set", "rows_per_part=100", "--quiet", "--resolver", url, "--rate", "150/s", "--concurrency", fmt.Sprint(concurrency), "--fail-on", "never"}
		if idempotent {
			flags = append(flags, "--idempotent")
		}
		in, out := "s3://"+clitest.S3Bucket+"/"+name+"-in/", "s3://"+clitest.S3Bucket+"/"+name+"/"
		on := func(more ...string) (*clitest.Process, int) {
			args := c.on(in, out, append(more, flags...)...)
			args[1] = "ip_to_company"
			return c.ends(args...)
		}
		before := len(service.BilledKeys())
		stop, done, watched := make(chan struct{}), make(chan int), make(chan struct{})
		go func() { done <- c.torment(random, time.Second, stop) }()
		go func() { defer close(watched); names.watch(c, stop) }()
		if round%4 > 1 {
			p, code := on("--max-calls", fmt.Sprint(rows/2))
			if billed := len(service.BilledKeys()) - before; code != cli.ExitBudget || billed > rows/2 {
				t.Errorf("%s: exit code %d, %d of %d calls are billed:\n%s\n%s", name, code, billed, rows/2, clitest.Tail(p.Said.String()), c.said())
			}
		}
		p, code := on()
		close(stop)
		hit := <-done
		<-watched
		if code != cli.ExitDone {
			t.Fatalf("%s: exit code %d:\n%s\n%s", name, code, clitest.Tail(p.Said.String()), c.said())
		}
		kills, asked = kills+hit, asked+rows
		open := c.proved(name, in, idempotent)
		if idempotent && open > 0 || open > concurrency*hit {
			t.Errorf("%s: %d rows have an unknown call after %d kills", name, open, hit)
		}
		unknown += open
		t.Logf("%s: %d kills, %d unknown", name, hit, open)
		for key, times := range service.BilledKeys() {
			if times != 1 {
				t.Errorf("a key is billed %d times: %v", times, clitest.CallsOf(service, key))
			}
		}
		if billed := len(service.BilledKeys()); billed > asked || billed < asked-unknown {
			t.Errorf("%d of %d keys are billed, %d unknown", billed, asked, unknown)
		}
	}
	t.Logf("%d kills, %d keys, %d unknown", kills, asked, unknown)
	c.requireSilent("11.100.7.101", "11.101.3.77", clitest.RemoteKey, "list.csv")
	names.requireSilent(t)
}

// objectNames are the names of all objects that a run has had, at any time: those
// of the state and the output.
type objectNames map[string]bool

// watch collects names until stop is closed, and once more then.
func (o objectNames) watch(c *cluster, stop <-chan struct{}) {
	for last := false; !last; {
		select {
		case <-stop:
			last = true
		case <-time.After(100 * time.Millisecond):
		}
		_ = filepath.WalkDir(c.Object(""), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && !strings.Contains(path, "-in/") && !strings.HasSuffix(path, "-in") { // the input may be named as it likes
				o[strings.TrimPrefix(path, c.Object(""))] = true
			}
			return nil // objects come and go
		})
	}
}

// requireSilent: no name holds an address of the lists, the API key or the name of
// an input, as text or in Base64.
func (o objectNames) requireSilent(t *testing.T) {
	t.Helper()
	kinds := map[string]bool{"/log/": false, "/f/": false, "/v/": false, "/lease/": false, "/journal/": false, "/cluster/": false}
	canary := regexp.MustCompile(`11[._]10[0-9][._][0-9]+|MTEuMT|list\.csv|@|` + regexp.QuoteMeta(clitest.RemoteKey))
	for name := range o {
		for kind, seen := range kinds {
			kinds[kind] = seen || strings.Contains(name, kind)
		}
		if canary.MatchString(name) {
			t.Errorf("an object is named %q", name)
		}
	}
	for kind, seen := range kinds {
		if !seen {
			t.Errorf("no object with %s in its name was seen", kind)
		}
	}
}

// roundList is a list of addresses that no other round has.
func roundList(round, rows int) string {
	var b strings.Builder
	b.WriteString("ip\n")
	for i := range rows {
		fmt.Fprintf(&b, "11.%d.%d.%d\n", 100+round, i/250, i%250+1)
	}
	return b.String()
}

// proved compares a dataset with that of one machine, offline, of a copy of the
// answers, and returns how many rows have an unknown call. Such rows are others
// offline, so then no file is compared.
func (c *cluster) proved(name, in string, compare bool) (unknown int) {
	c.Helper()
	clitest.Run(c, clitest.OnStore(c.Proxy.URL, "answers", "copy", "s3://"+clitest.S3Bucket+"/state/", c.Path(name))...)
	again := clitest.StartProgram(c, clitest.OnStore(c.Proxy.URL, "run", "ip_to_company", "--in", in, "--out", c.Path(name+"-again"), "--state", c.Path(name),
		"--set", "rows_per_part=100", "--quiet", "--resolver", c.flags[1], "--offline", "--fail-on", "never")...)
	if code := again.Code(); code != cli.ExitDone {
		c.Fatalf("offline: exit code %d:\n%s", code, clitest.Tail(again.Said.String()))
	}
	got, compared := c.published(name), 0
	for file, want := range clitest.Files(c, c.Path(name+"-again")) {
		if compare && strings.HasSuffix(file, ".parquet") {
			compared++
			if got[file] != want {
				c.Errorf("%s/%s differs from that of one machine, offline", name, file)
			}
		}
	}
	if compare && compared != 6 {
		c.Errorf("%s: %d parts are compared", name, compared)
	}
	totals := c.totals(name)
	unknown = int(totals.Reasons["failed"]["unknown_call"])
	c.requireService(name, totals, unknown)
	return unknown
}

// totals are those of the manifest of a dataset.
func (c *cluster) totals(name string) sinks.Totals {
	c.Helper()
	var m sinks.Manifest
	data, err := os.ReadFile(filepath.Join(c.Object(name), "_manifest.json"))
	if err := errors.Join(err, json.Unmarshal(data, &m)); err != nil {
		c.Fatal(err)
	}
	return m.Totals
}

// requireService compares the report on the calls with the rows, which have
// different keys.
func (c *cluster) requireService(name string, rows sinks.Totals, unknown int) {
	c.Helper()
	var r report.Report
	data, err := os.ReadFile(filepath.Join(c.Object(name), "_report.json"))
	if err := errors.Join(err, json.Unmarshal(data, &r)); err != nil || r.Service == nil {
		c.Fatalf("%s: %v, no calls in %s", name, err, data)
	}
	s := r.Service
	if s.Calls.Asked > rows.Rows || s.Budget.Calls != rows.Rows || s.Calls.EarlierCredits+s.Calls.Credits != rows.Matched ||
		s.Budget.Credits != rows.Matched+int64(unknown) { // each unknown call may have cost the price of a match
		c.Errorf("%s: %+v of %+v, %d unknown", name, s, rows, unknown)
	}
}

// requireSilent: no history of the server, nor its database, holds one of these.
func (c *cluster) requireSilent(canaries ...string) {
	c.Helper()
	held := map[string][]byte{}
	for _, id := range c.server.Workflows(c) {
		held["the history of "+id] = c.server.History(c, id)
	}
	if len(held) == 0 {
		c.Error("no history")
	}
	c.server.Kill()
	for _, suffix := range []string{"", "-wal"} {
		if data, err := os.ReadFile(c.server.File + suffix); err == nil {
			held["the database"+suffix] = data
		}
	}
	for i, w := range c.workers {
		held[fmt.Sprint("the log of worker ", i)] = []byte(w.Said.String())
	}
	for what, data := range held {
		for _, canary := range canaries {
			if bytes.Contains(data, []byte(canary)) {
				c.Errorf("%s holds %q", what, canary)
			}
		}
	}
}
