package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// profiles is a list of n profile addresses that a canary marks.
func profiles(t *testing.T, n int) string {
	t.Helper()
	list := "network_url\n"
	for i := range n {
		list += fmt.Sprintf("https://linkedin.com/in/canary-%d\n", i)
	}
	path := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// logged tells the first text that follows a word in what is written.
type logged struct {
	all   bytes.Buffer
	after *regexp.Regexp
	found chan string
}

func (l *logged) Write(p []byte) (int, error) {
	l.all.Write(p)
	if m := l.after.FindSubmatch(l.all.Bytes()); m != nil && len(l.found) == 0 {
		select {
		case l.found <- string(m[1]):
		default:
		}
	}
	return len(p), nil
}

// TestMetricsOfARun looks at a run while its service has answered twenty of
// thirty calls, one by one.
func TestMetricsOfARun(t *testing.T) {
	const before, all = 20, 30
	books := badservice.New(badservice.DefaultOptions())
	t.Cleanup(func() { books.Close() })
	var calls atomic.Int64
	reached, goOn := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == before+1 {
			close(reached)
			<-goOn
		}
		books.ServeHTTP(w, r)
	}))
	defer service.Close()
	t.Setenv(runcmd.APIKeyVariable, "lrk_test_CanaryOfTheKey")

	folder := t.TempDir()
	said := &logged{after: regexp.MustCompile(`msg=metrics url=(\S+)/metrics`), found: make(chan string, 1)}
	ended := make(chan int, 1)
	go func() {
		ended <- program.Execute(t.Context(), []string{
			"run", "enrichment", "--in", profiles(t, all), "--out", filepath.Join(folder, "out"), "--state", filepath.Join(folder, "state"),
			"--resolver", service.URL, "--concurrency", "1", "--rate", "1000/s", "--set", "metrics_listen=127.0.0.1:0",
		}, strings.NewReader(""), io.Discard, said)
	}()
	url := <-said.found
	<-reached
	// The next question comes to wait for the place of the call under way.
	text := getUntil(t, url+"/metrics", "\nleadetl_run_paused{reason=\"concurrency\"} 1")
	for _, want := range []string{
		`leadetl_run_calls_total{class="answered"} 20`,
		`leadetl_run_call_seconds_count 20`,
		`leadetl_run_call_seconds_bucket{le="16.384"} 20`,
		`leadetl_run_rows_total{outcome="matched"} 0`, // the batch is not whole
		`leadetl_run_rows_total{outcome="failed"} 0`,
		`leadetl_run_identifiers_total 30`,
		`leadetl_run_resolver_identifiers_total{resolver="service"} 30`,
		`leadetl_run_resolver_calls_total{class="answered",resolver="service"} 20`,
		`leadetl_run_read_rows_total 30`,
		`leadetl_run_stored_total 0`,
		`leadetl_run_duplicates_total 0`,
		`leadetl_run_unknown_calls 0`,
		`leadetl_run_parked 0`,
		`leadetl_run_in_flight 1`,
		`leadetl_run_rate_limit `,
		`leadetl_run_credits_total `,
		`leadetl_run_paused{reason="concurrency"} 1`,
		`leadetl_run_paused{reason="dead"} 0`,
		`leadetl_run_waiting_seconds_total{reason="`,
		`leadetl_build_info{version="leadetl`,
		`go_goroutines `,
		`process_start_time_seconds `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(strings.ToLower(text), "canary") {
		t.Error("the metrics hold personal data or the key")
	}
	if got := get(t, url+"/healthz", http.StatusOK); got != "ok\n" {
		t.Errorf("/healthz says %q", got)
	}
	get(t, url+"/", http.StatusNotFound)
	if r, err := http.Post(url+"/metrics", "text/plain", nil); err != nil || r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: %v, %v", r, err)
	} else {
		r.Body.Close()
	}

	close(goOn)
	if code := <-ended; code != cli.ExitDone {
		t.Fatalf("exit code %d:\n%s", code, &said.all)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		c.Close()
		t.Error("the metrics are there after the run")
	}
}

// TestPageOfMetrics keeps the table of docs/reference/metrics.md what the program says of its metrics.
func TestPageOfMetrics(t *testing.T) {
	described := make(chan *prometheus.Desc)
	go func() {
		runcmd.NewRunMetrics(&stats.Progress{}).Describe(described)
		close(described)
	}()
	table := "| metric | labels | |\n|---|---|---|\n"
	for d := range described {
		m := regexp.MustCompile(`fqName: "(.*)", help: "(.*)\.", .*variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s has another form", d)
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", m[1], strings.ReplaceAll(m[3], ",", ", "), m[2])
	}
	requireTable(t, "docs/reference/metrics.md", table)
}

// get is a page that has to have a status.
func get(t *testing.T, url string, status int) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != status {
		t.Errorf("%s: %d, %v; want %d", url, r.StatusCode, err, status)
	}
	return string(body)
}

// getUntil is a page that holds a text, as soon as it does.
func getUntil(t *testing.T, url, want string) (text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		if text = get(t, url, http.StatusOK); strings.Contains(text, want) {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("%s: no %s", url, want)
		}
	}
}

// TestMetricsPortInUse: a wrong address ends the command before it writes or
// calls anything, and says which one to write.
func TestMetricsPortInUse(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for address, want := range map[string]string{
		busy.Addr().String(): fmt.Sprintf("port %d is in use at 127.0.0.1; name another, such as 127.0.0.1:", busy.Addr().(*net.TCPAddr).Port),
		"127.0.0.1":          "127.0.0.1 is not an address; write HOST:PORT",
		"127.0.0.1:port":     "127.0.0.1:port is not an address; write HOST:PORT",
	} {
		folder := t.TempDir()
		var said bytes.Buffer
		code := program.Execute(t.Context(), []string{
			"run", "email_to_hem", "--in", clitest.Samples + "/emails.csv", "--out", filepath.Join(folder, "out"), "--state", filepath.Join(folder, "state"),
			"--set", "metrics_listen=" + address,
		}, strings.NewReader(""), io.Discard, &said)
		if code != cli.ExitUsage || !strings.Contains(said.String(), "leadetl: metrics_listen: "+want) {
			t.Errorf("%s: exit code %d, %s", address, code, &said)
		}
		said.Reset()
		code = program.Execute(t.Context(), []string{
			"serve", "--state", filepath.Join(folder, "state"), "--directory", "none", "--internal-listen", "none", "--listen", address,
		}, strings.NewReader(""), io.Discard, &said)
		if code != cli.ExitUsage || !strings.Contains(said.String(), "leadetl: --listen: "+want) {
			t.Errorf("serve at %s: exit code %d, %s", address, code, &said)
		}
		if _, err := os.Stat(filepath.Join(folder, "out")); err == nil {
			t.Errorf("%s: the output folder was made", address)
		}
	}
}
