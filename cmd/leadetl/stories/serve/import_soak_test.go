//go:build unix

package serve

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
)

// TestDirectorySoak: for LEADETL_SOAK (make soak: 20 minutes), imports replace the
// directory under a service and under runs. No call and no run fails, each answer is
// one of an import, each dataset is verified, and the service lets go of the files of
// old imports.
func TestDirectorySoak(t *testing.T) {
	t.Parallel()
	length, every, people := 3*time.Second, 300*time.Millisecond, 500
	if text := os.Getenv("LEADETL_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		every, people = 10*time.Second, 50_000
	}
	p := clitest.NewPlace(t)
	generation := func(n int) string {
		var b strings.Builder
		b.WriteString("network_url,first_name,emails,company_domain\n")
		for i := range people {
			fmt.Fprintf(&b, "network.example/in/p%d,Generation%d,p%d@x.example,c%d.example\n", i, n, i, i%50)
		}
		return clitest.WriteFile(t, "people.csv", b.String())
	}
	first := generation(0)
	clitest.Run(t, "directory", "import", "--directory", p.Directory, "--people", first)
	profiles := strings.Builder{}
	profiles.WriteString("network_url\n")
	for i := range people {
		fmt.Fprintf(&profiles, "network.example/in/p%d\n", i)
	}
	list := clitest.WriteFile(t, "profiles.csv", profiles.String())

	s := p.Serve(clitest.Unlimited...)
	c := clitest.NewCaller(t, s.Public, p.Customer("Example Rockets", "1000000000"))
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var others sync.WaitGroup
	var calls, runs, imports atomic.Int64
	isGeneration := regexp.MustCompile(`^Generation\d+$`)
	for caller := range 2 {
		others.Go(func() {
			for ; ctx.Err() == nil && !t.Failed(); calls.Add(1) {
				question := fmt.Sprintf(`{"network_url":"network.example/in/p%d"}`, (int(calls.Load())*2+caller)%people)
				a, err := c.Try(context.Background(), http.MethodPost, "/lead/enrichment", question)
				if err != nil || a.Status != http.StatusOK || !isGeneration.MatchString(a.Text("lead", "first_name")) {
					t.Errorf("call %d: %d %s %v", calls.Load(), a.Status, a.Raw, err)
				}
			}
		})
	}
	command := func(args ...string) string {
		var out, said bytes.Buffer
		if code := program.Execute(context.Background(), args, strings.NewReader(""), &out, &said); code != cli.ExitDone {
			t.Errorf("leadetl %s: exit code %d\n%s", strings.Join(args, " "), code, said.String())
		}
		return out.String()
	}
	others.Go(func() {
		out := filepath.Join(t.TempDir(), "out")
		for ; ctx.Err() == nil && !t.Failed(); runs.Add(1) {
			printed := command("run", "enrichment", "--in", list, "--directory", p.Directory, "--out", out, "--overwrite", "--quiet", "--summary-json", "-")
			if want := fmt.Sprintf(`"matched":%d`, people); !strings.Contains(strings.ReplaceAll(printed, " ", ""), want) {
				t.Errorf("run %d: %s, want %s", runs.Load(), printed, want)
			}
			command("verify", out)
		}
	})
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 1; ctx.Err() == nil && !t.Failed(); n++ {
		command("directory", "import", "--directory", p.Directory, "--people", generation(n))
		imports.Add(1)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	others.Wait()
	t.Logf("%d imports under %d calls and %d runs", imports.Load(), calls.Load(), runs.Load())
	if imports.Load() < 2 || calls.Load() == 0 || runs.Load() == 0 {
		t.Error("want some of each")
	}
	if maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.Process.Process.Pid)); err == nil {
		// The present files, and those of the import before while a call reads them.
		if n := strings.Count(string(maps), p.Directory); n > 12 {
			t.Errorf("the service has %d files of directories mapped", n)
		}
	}
	if code := s.Stop(syscall.SIGTERM); code != cli.ExitDone {
		t.Errorf("the service ends with %d", code)
	}
}
