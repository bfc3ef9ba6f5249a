package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// wrk makes the load, with the target's connections and threads, against a
// directory that does not fit into a processor's caches.
const (
	connections = 64
	loadCredits = 1_000_000_000
)

// service measures serve under load, against a server that only reads and writes
// JSON over HTTP. It also measures keyword searches.
func (b *bench) service(ctx context.Context) (err error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		b.report.note("serve under load", "not measured: wrk is not installed")
		return nil
	}
	people, companies := b.rows/10, b.rows/500
	dir, state := b.path("directory"), b.path("service")
	peopleFile, companiesFile, searchesFile := b.path("people.csv"), b.path("companies.csv"), b.path("searches.csv")
	defer func() {
		err = errors.Join(err, os.RemoveAll(dir), os.RemoveAll(state), os.Remove(peopleFile), os.Remove(companiesFile), os.Remove(searchesFile))
	}()
	if err := errors.Join(writePeople(peopleFile, people, companies), writeCompanies(companiesFile, companies), writeSearches(searchesFile, b.rows, people, time.Now())); err != nil {
		return err
	}
	imported, err := b.leadetl(ctx, "directory", "import", "--directory", dir, "--people", peopleFile, "--companies", companiesFile, "--searches", searchesFile)
	if err != nil {
		return err
	}
	b.report.times(series{what: "leadetl, import of searches and people", rows: b.rows + people + companies, runs: []usage{imported}})
	if _, err := b.leadetl(ctx, "admin", "org", "create", "bench", "--credits", strconv.Itoa(loadCredits), "--state", state); err != nil {
		return err
	}
	made, err := b.leadetl(ctx, "admin", "key", "create", "bench", "--state", state)
	if err != nil {
		return err
	}
	key := strings.TrimSpace(made.output)

	seconds := max(5, b.rows/500_000)
	enrichment := question{path: "/lead/enrichment", body: `{"network_url":"https://network.example/in/person-' .. n .. '"}`, connections: connections}
	bare, err := b.underLoad(ctx, key, enrichment, people, seconds, func(address string) *exec.Cmd {
		return exec.CommandContext(ctx, b.path("bare"), address)
	})
	if err != nil {
		return err
	}
	var page time.Duration
	ours, err := b.underLoad(ctx, key, enrichment, people, 2*seconds, func(address string) *exec.Cmd {
		return exec.CommandContext(ctx, b.path("leadetl"), "serve", "--directory", dir, "--state", state, "--listen", address, "--internal-listen", "none",
			"--limit-single", "0", "--limit-create", "0", "--limit-result", "0", "--log-level", "warn")
	}, func(address string, _ load) (err error) {
		page, err = slowestPage(ctx, "http://"+address, key)
		return err
	})
	if err != nil {
		return err
	}
	spent, err := b.spent(ctx, state)
	if err != nil {
		return err
	}
	r := &b.report
	r.atLeast(fmt.Sprintf("serve: enrichment with credits and ledger, %d connections", connections), 12_000, ours.rate, "%.0f requests/s")
	r.below("  99th percentile", 20, ours.p99.Seconds()*1000, "%.1f ms")
	r.add("  errors, and calls the ledger does not have", "0", fmt.Sprint(ours.failed+max(0, ours.requests-spent/2)), ours.failed == 0 && spent/2 >= ours.requests)
	r.note("  against a bare net/http JSON handler", fmt.Sprintf("%.2f× of %.0f requests/s", ours.rate/bare.rate, bare.rate))
	r.note(fmt.Sprintf("  memory after %d s of load, and after twice that", seconds), fmt.Sprintf("%s, %s", megabytes(ours.halfway), megabytes(ours.end)))
	r.below("serve: slowest list page of a keyword search in "+millions(b.rows)+" searches", 200, page.Seconds()*1000, "%.0f ms")
	return b.callbacks(ctx, dir, people, 2*seconds)
}

// load is the result of a server under load.
type load struct {
	rate             float64 // requests a second
	p99              time.Duration
	requests, failed int
	halfway, end     int64         // resident memory, bytes
	cpu              time.Duration // of the server, including what it did after the load
}

// question is the request of wrk. The body is in a Lua string; n is a person.
type question struct {
	path, body  string
	connections int
}

// underLoad starts a server and lets wrk call it. Then it calls each function in
// after, in order.
func (b *bench) underLoad(ctx context.Context, key string, q question, people, seconds int, server func(address string) *exec.Cmd, after ...func(address string, l load) error) (l load, err error) {
	address, err := freeAddress()
	if err != nil {
		return l, err
	}
	script := b.path("load.lua")
	text := fmt.Sprintf(`wrk.method = "POST"
wrk.path = "%s"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer %s"
math.randomseed(os.time())
request = function()
  local n = math.random(0, %d)
  return wrk.format(nil, nil, nil, '%s')
end
`, q.path, key, people-1, q.body)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return l, err
	}
	c := server(address)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		return l, err
	}
	defer func() {
		stop := c.Process.Signal(syscall.SIGTERM)
		if wait := c.Wait(); stop != nil || wait != nil && c.ProcessState.ExitCode() > 0 {
			err = errors.Join(err, fmt.Errorf("server: %w: %s", errors.Join(stop, wait), stderr.Bytes()))
		}
		l.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}()
	if err := listening(ctx, address); err != nil {
		return l, err
	}
	for _, memory := range []*int64{&l.halfway, &l.end} {
		out, err := exec.CommandContext(ctx, "wrk", "-t2", fmt.Sprintf("-c%d", q.connections), fmt.Sprintf("-d%ds", max(1, seconds/2)), "--latency", "-s", script, "http://"+address).CombinedOutput()
		if err != nil {
			return l, fmt.Errorf("wrk: %w: %s", err, out)
		}
		if err := l.add(string(out)); err != nil {
			return l, err
		}
		*memory = resident(c.Process.Pid)
	}
	for _, do := range after {
		err = errors.Join(err, do(address, l))
	}
	return l, err
}

// add reads the output of wrk. Of several loads, the last one counts for speed,
// and all count for errors.
func (l *load) add(out string) error {
	var err error
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "99%":
			l.p99, err = time.ParseDuration(f[1])
		case len(f) == 2 && f[0] == "Requests/sec:":
			l.rate, err = strconv.ParseFloat(f[1], 64)
		case len(f) > 3 && f[1] == "requests" && f[2] == "in":
			var n int
			n, err = strconv.Atoi(f[0])
			l.requests += n
		case strings.HasPrefix(line, "  Non-2xx") || strings.HasPrefix(line, "  Socket errors"):
			for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r < '0' || r > '9' }) {
				if n, notNumber := strconv.Atoi(word); notNumber == nil && !(strings.HasPrefix(line, "  Non-2xx") && word == "2") && !(strings.HasPrefix(line, "  Non-2xx") && word == "3") {
					l.failed += n
				}
			}
		}
		if err != nil {
			return fmt.Errorf("wrk printed %q: %w", line, err)
		}
	}
	if l.rate == 0 || l.p99 == 0 {
		return fmt.Errorf("wrk printed no speed: %s", out)
	}
	return nil
}

// spent is the number of credits that the service's ledger has charged.
func (b *bench) spent(ctx context.Context, state string) (int, error) {
	u, err := b.leadetl(ctx, "admin", "credits", "grant", "bench", "1", "--state", state)
	if err != nil {
		return 0, err
	}
	left, err := strconv.Atoi(strings.TrimSpace(u.output))
	return loadCredits + 1 - left, err
}

// slowestPage requests pages of keywords with many results, and of keywords that
// one in a thousand searches has. It returns the longest time from the creation
// to the answer with the leads.
func slowestPage(ctx context.Context, url, key string) (slowest time.Duration, err error) {
	today := time.Now().UTC()
	dates := map[string]any{"date_start": today.AddDate(0, 0, -30).Format(time.DateOnly), "date_end": today.Format(time.DateOnly)}
	for _, keyword := range []string{"software", "topic 7", "software for topic 7"} {
		for _, page := range []int{1, 100} {
			search := map[string]any{"keywords": []string{keyword}, "limit": 100, "page": page, "deanonymize": true, "super_enrichment": true}
			for k, v := range dates {
				search[k] = v
			}
			var times []time.Duration
			for range 5 {
				started := time.Now()
				if err := listPage(ctx, url, key, search); err != nil {
					return 0, err
				}
				times = append(times, time.Since(started))
			}
			slices.Sort(times)
			slowest = max(slowest, times[len(times)/2])
		}
	}
	return slowest, nil
}

func listPage(ctx context.Context, url, key string, search map[string]any) error {
	var created, result struct {
		Resolution struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"resolution"`
	}
	if err := call(ctx, url+"/resolve/keyword_to_lead", key, search, &created); err != nil {
		return err
	}
	for result.Resolution.Status != "completed" {
		if err := call(ctx, url+"/resolve/keyword_to_lead/result", key, map[string]string{"resolution_id": created.Resolution.ID}, &result); err != nil {
			return err
		}
		if result.Resolution.Status == "failed" {
			return errors.New("a keyword search failed")
		}
	}
	return nil
}

func call(ctx context.Context, url, key string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d: %s", url, response.StatusCode, text)
	}
	return json.Unmarshal(text, answer)
}

// freeAddress returns an address that no server listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// listening waits until a server accepts connections.
func listening(ctx context.Context, address string) error {
	for range 300 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("nothing listens on %s after 30 s", address)
}

// resident is the current memory of a process; 0 if the system does not say.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
