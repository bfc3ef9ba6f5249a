//go:build unix

package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// toxiproxyModule is the nested module that pins the program.
var toxiproxyModule = ModuleRoot + "/internal/testkit/testservers/toxiproxy"

// Toxiproxy is a proxy that does to connections what networks do to them: a
// program of its own in front of a service.
type Toxiproxy struct {
	testing.TB
	api     string
	URL     string // where the service is reached through it
	service string // address
	listen  string // address of the proxy
	made    int    // proxies so far
	process *exec.Cmd
	said    *Output
	http    *http.Client
}

// Toxic is a misbehaviour of connections. Source: toxiproxy's README.
type Toxic struct {
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`   // upstream, or downstream
	Toxicity   float64        `json:"toxicity"` // share of connections
	Attributes map[string]int `json:"attributes"`
}

// NewToxiproxy builds the program, starts it and puts it in front of a
// service. Its modules have to be had: with -short, which does without, the
// test is skipped and says so.
func NewToxiproxy(t testing.TB, service string) *Toxiproxy {
	t.Helper()
	if testing.Short() {
		t.Skip("toxiproxy is a program that has to be built")
	}
	var said strings.Builder
	build := exec.Command("go", "-C", toxiproxyModule, "tool", "-n", "server") // builds it once, into the build cache
	build.Stderr = &said
	program, err := build.Output()
	if err != nil {
		t.Fatalf("toxiproxy cannot be built: %v; its modules come from the module proxy, go test -short does without\n%s", err, &said)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	p := &Toxiproxy{TB: t, api: "http://127.0.0.1:" + port, said: new(Output), http: &http.Client{Timeout: Patience}}
	p.process = exec.Command(strings.TrimSpace(string(program)), "-host", "127.0.0.1", "-port", port, "-seed", "1")
	p.process.Stderr = p.said
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	Until(t, "toxiproxy listens", func() bool {
		response, err := p.http.Get(p.api + "/version")
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	})
	p.service, p.listen = strings.TrimPrefix(service, "http://"), "127.0.0.1:0"
	p.Poison()
	p.URL = "http://" + p.listen
	return p
}

// Stop ends the program; nothing reaches the service through it any more.
func (p *Toxiproxy) Stop() {
	_ = p.process.Process.Kill() // one that is gone is as well
	_ = p.process.Wait()
}

// call asks the program's own interface.
func (p *Toxiproxy) call(method, path string, question, answer any) {
	p.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		p.Fatal(err)
	}
	r, err := http.NewRequest(method, p.api+path, bytes.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	response, err := p.http.Do(r)
	if err != nil {
		p.Fatalf("toxiproxy: %v\n%s", err, Tail(p.said.String()))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		p.Fatalf("toxiproxy: %s %s: %s %s %v", method, path, response.Status, text, err)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			p.Fatalf("toxiproxy: %s: %v", text, err)
		}
	}
}

// Poison breaks all connections and has new toxics for those to come: a proxy
// of its own, in the place of the one before. The program crashes or hangs
// when the toxics of a proxy change that has connections, or had some.
func (p *Toxiproxy) Poison(toxics ...Toxic) {
	p.Helper()
	if p.made > 0 {
		p.call(http.MethodDelete, p.proxy(), nil, nil)
	}
	p.made++
	var made struct{ Listen string }
	p.call(http.MethodPost, "/proxies", map[string]any{"name": path.Base(p.proxy()), "listen": p.listen, "upstream": p.service, "enabled": false}, nil)
	for _, one := range toxics {
		p.call(http.MethodPost, p.proxy()+"/toxics", one, nil)
	}
	p.call(http.MethodPost, p.proxy(), map[string]any{"enabled": true}, &made)
	p.listen = made.Listen
}

// proxy is the path of the present proxy.
func (p *Toxiproxy) proxy() string { return fmt.Sprint("/proxies/service-", p.made) }

// RandomToxics are some of what can happen to connections, at random.
func RandomToxics(random *rand.Rand) (toxics []Toxic) {
	menu := []Toxic{
		{"latency", "downstream", 1, map[string]int{"latency": random.IntN(40), "jitter": random.IntN(40)}},
		{"latency", "upstream", 0.5, map[string]int{"latency": random.IntN(30), "jitter": random.IntN(30)}},
		{"reset_peer", "downstream", 0.1, map[string]int{"timeout": random.IntN(400)}},
		{"reset_peer", "upstream", 0.1, map[string]int{"timeout": random.IntN(400)}},
		{"timeout", "downstream", 0.04, map[string]int{"timeout": 0}}, // half open: what is sent arrives, and nothing comes back
		{"timeout", "upstream", 0.04, map[string]int{"timeout": 0}},
		{"limit_data", "downstream", 0.1, map[string]int{"bytes": 500 + random.IntN(20_000)}},
		{"slicer", "downstream", 0.3, map[string]int{"average_size": 200, "size_variation": 100, "delay": 100}},
	}
	for _, one := range menu {
		if random.IntN(2) == 0 {
			toxics = append(toxics, one)
		}
	}
	return toxics
}
