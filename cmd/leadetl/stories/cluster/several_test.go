//go:build unix

package cluster

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestClusterSeveral asks several resolvers on workers that are killed, put to sleep and asked to
// end: a provider, one by batches, and a service. Workers get the order and the entries from the
// client, whose files they do not reach. No key is billed twice at any, and the offline dataset of
// a copy of the answers has the same rows.
func TestClusterSeveral(t *testing.T) {
	const rows = 600
	one, bulk := badservice.DefaultProvider("acme"), badservice.DefaultProvider("bulk")
	bulk.Batch = 20
	var entries strings.Builder
	var providers []*badservice.Provider
	for _, o := range []badservice.ProviderOptions{one, bulk} {
		o.Key, o.Latency = clitest.RemoteKey, 50*time.Millisecond
		p, err := badservice.NewProvider(o)
		if err != nil {
			t.Fatal(err)
		}
		url, err := p.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		entries.WriteString(p.Entry(url))
		providers = append(providers, p)
	}
	service, url := clitest.StartService(t, badservice.DefaultOptions())
	for _, name := range []string{"ACME", "BULK", "LEADS"} {
		t.Setenv("LEADETL_KEY_"+name, clitest.RemoteKey)
	}
	c := newCluster(t, "--resolver", "acme", "--resolver", "leads", "--resolver", "bulk")
	var list strings.Builder
	list.WriteString("network_url\n")
	for i := range rows {
		fmt.Fprintf(&list, "network.example/in/person-%d\n", i)
	}
	c.Put("in/list.csv", list.String())
	for name, text := range map[string]string{
		"providers.yaml": entries.String(),
		"job.yaml": "operation: enrichment\nnetwork_hosts: [network.example]\nwant: [email, phone]\nproviders: ./providers.yaml\nfail_on: never\nquiet: true\nrows_per_part: 100\nresolvers:\n" +
			"  - acme: {concurrency: 8, rate: 100/s}\n  - bulk: {concurrency: 2}\n  - " + url + ": {name: leads, concurrency: 8, idempotent: 24h}\n",
	} {
		if err := os.WriteFile(c.Path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, out := "s3://"+clitest.S3Bucket+"/in/", "s3://"+clitest.S3Bucket+"/out/"
	stop, done := make(chan struct{}), make(chan int)
	go func() { done <- c.torment(rand.New(rand.NewPCG(clitest.S3KillSeed, 3)), 2*time.Second, stop) }()
	args := c.on(in, out)
	args[1] = "enrichment"
	p, code := c.ends(append(args, "--job", c.Path("job.yaml"))...)
	close(stop)
	kills := <-done
	if code != cli.ExitDone {
		t.Fatalf("exit code %d:\n%s\n%s", code, clitest.Tail(p.Said.String()), c.said())
	}
	for i, p := range providers {
		for key, bills := range badservice.Bills(p.Ledger()) {
			if bills != 1 {
				t.Errorf("provider %d bills %s %d times", i, key, bills)
			}
		}
	}
	for key, times := range service.BilledKeys() {
		if times != 1 {
			t.Errorf("a key is billed %d times: %v", times, clitest.CallsOf(service, key))
		}
	}
	totals := c.totals("out")
	asked := len(badservice.Bills(providers[0].Ledger())) + len(badservice.Bills(providers[1].Ledger())) + len(service.BilledKeys())
	t.Logf("%d kills, %d keys billed, %v", kills, asked, totals.Reasons["failed"])
	if totals.Matched < rows/2 || asked < rows {
		t.Errorf("%d rows matched, %d keys were billed", totals.Matched, asked)
	}
	clitest.Run(t, "answers", "copy", "s3://"+clitest.S3Bucket+"/state/", c.Path("copy"), "--s3-endpoint", c.Proxy.URL, "--s3-path-style")
	again := clitest.StartProgram(t, clitest.OnStore(c.Proxy.URL, "run", "--job", c.Path("job.yaml"), "--in", in, "--out", c.Path("again"), "--state", c.Path("copy"), "--offline")...)
	if code := again.Code(); code != cli.ExitDone {
		t.Fatalf("offline: exit code %d:\n%s", code, clitest.Tail(again.Said.String()))
	}
	if unknown := totals.Reasons["failed"]; len(unknown) == 0 {
		got := c.published("out")
		for file, want := range clitest.Files(c, c.Path("again")) {
			if strings.HasPrefix(file, "part-") && got[file] != want {
				t.Errorf("%s differs from that of one machine, offline", file)
			}
		}
	}
	c.requireSilent("person-17", clitest.RemoteKey, "list.csv")
}
