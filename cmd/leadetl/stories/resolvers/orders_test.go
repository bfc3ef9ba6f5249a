//go:build unix

package resolvers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// order is a job of several resolvers and everything it leaves: a user who gives the same command
// again and again.
type order struct {
	testing.TB
	folder    string
	job       string         // keys of the job file beside in, out, state and providers
	resolvers []string       // items of the job file; the name of a provider alone has a key
	server    *s3test.Server // has datasets and state; nil has them in the folder
}

// profiles is a list of so many profiles.
func profiles(n int) string {
	var b strings.Builder
	b.WriteString("network_url\n")
	for i := range n {
		fmt.Fprintf(&b, "https://network.example/in/person-%d\n", i)
	}
	return b.String()
}

// newOrder is a job about a list.
func newOrder(t testing.TB, list string) *order {
	t.Helper()
	x := &order{TB: t, folder: t.TempDir(), job: "operation: enrichment\nnetwork_hosts: [network.example]\nwant: [email, phone]\n"}
	x.write("in.csv", list)
	x.write("key", clitest.RemoteKey)
	x.write("providers.yaml", "# none yet\n")
	return x
}

func (x *order) path(name string) string { return filepath.Join(x.folder, name) }

func (x *order) write(name, text string) {
	x.Helper()
	if err := os.WriteFile(x.path(name), []byte(text), 0o600); err != nil {
		x.Fatal(err)
	}
}

// starts starts a provider, whose entry the job has.
func (x *order) starts(o badservice.ProviderOptions) *badservice.Provider {
	x.Helper()
	o.Key = clitest.RemoteKey
	p, err := badservice.NewProvider(o)
	if err != nil {
		x.Fatal(err)
	}
	url, err := p.Start()
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() {
		if err := p.Close(); err != nil {
			x.Error(err)
		}
	})
	entries, err := os.ReadFile(x.path("providers.yaml"))
	if err != nil {
		x.Fatal(err)
	}
	x.write("providers.yaml", string(entries)+p.Entry(url))
	return p
}

// owns imports a directory that has a person with an email of some profiles.
func (x *order) owns(numbers ...int) {
	x.Helper()
	var b strings.Builder
	b.WriteString("network_url,first_name,last_name,email\n")
	for _, n := range numbers {
		fmt.Fprintf(&b, "network.example/in/person-%d,Own,Person %d,own%d@own.example\n", n, n, n)
	}
	x.write("people.csv", b.String())
	clitest.Run(x, "directory", "import", "--directory", x.path("own"), "--people", x.path("people.csv"), "--network-hosts", "network.example")
}

// args write the job file and are those of a command.
func (x *order) args(command string, flags ...string) []string {
	x.Helper()
	items := ""
	for _, item := range x.resolvers {
		if !strings.Contains(item, ":") {
			item += ": {key_file: ./key}"
		}
		items += "  - " + item + "\n"
	}
	x.write("job.yaml", x.job+"in: ./in.csv\nout: "+x.at("out")+"\nstate: "+x.at("state")+"\nproviders: ./providers.yaml\nresolvers:\n"+items)
	return append(clitest.OnStore(x.store(), command, "--job", x.path("job.yaml")), flags...)
}

// at is the address of out or state.
func (x *order) at(name string) string {
	if x.server == nil {
		return x.path(name)
	}
	return "s3://" + clitest.S3Bucket + "/" + name + "/"
}

// dataset is the folder of a dataset on the disk, in out.
func (x *order) dataset(name string) string {
	if x.server == nil {
		return filepath.Join(x.path("out"), name)
	}
	return filepath.Join(x.server.Dir, clitest.S3Bucket, "out", name)
}

// store is the address of the S3 store; "" for a folder.
func (x *order) store() string {
	if x.server == nil {
		return ""
	}
	return x.server.URL
}

// run runs the job in this process, to its end.
func (x *order) run(want int, flags ...string) (said string) {
	x.Helper()
	return x.executes(want, x.args("run", flags...)...)
}

func (x *order) executes(want int, args ...string) (said string) {
	x.Helper()
	var out, err bytes.Buffer
	if got := program.Execute(x.Context(), args, strings.NewReader(""), &out, &err); got != want {
		x.Fatalf("leadetl %s ended with exit code %d, want %d:\n%s", args[0], got, want, clitest.Tail(err.String()))
	}
	return out.String() + err.String()
}
