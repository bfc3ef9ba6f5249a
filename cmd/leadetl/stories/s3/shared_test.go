//go:build unix

package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestSharedRun: of a run that several processes share, one waits for the input, and the one that waits for the end
// tells how it ended, and its metrics.
func TestSharedRun(t *testing.T) {
	var mu sync.Mutex
	var posts []string
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		posts = append(posts, string(body))
	}))
	defer hook.Close()
	j := &steppedJob{S3Job: clitest.NewS3Job(t)}
	for name, text := range map[string]string{
		"hook":     hook.URL,
		"job.yaml": "operation: email_to_hem\nin: s3://leads/lists/\nwait_for_input: 1s\nnotify_file: " + j.Path("hook") + "\ns3_endpoint: " + j.Proxy.URL + "\ns3_path_style: true\n",
	} {
		if err := os.WriteFile(j.Path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j.flags = []string{"--job", j.Path("job.yaml"), "--out", "s3://leads/out", "--state", "s3://leads/state"}
	on := []string{"--on", "temporal://127.0.0.1:1/leads", "--set", "metrics_file=" + j.Path("on.prom")}
	does := func(code int, says, tells, step string, more ...string) {
		t.Helper()
		said := j.do(code, step, more...)
		mu.Lock()
		defer mu.Unlock()
		told := strings.Join(posts, "\n")
		posts = nil
		if !strings.Contains(said, says) || (tells == "") != (told == "") || !strings.Contains(told, tells) {
			t.Errorf("%s says\n%s\nand tells %q; want %q and %q", step, said, told, says, tells)
		}
	}
	const missing = "wait_for_input: the input is not there after 1s: s3://leads/lists/ has no file"
	does(cli.ExitTryAgain, missing, "", "survey")
	does(cli.ExitTryAgain, missing, "exit code 5", "run", on...)
	does(cli.ExitUsage, "notify, metrics_file and metrics_listen are of the process that waits for the end; leave out --detach", "exit code 2", "run", append(on, "--detach")...)
	does(cli.ExitUsage, "openlineage_url is told by a run in one process", "exit code 2", "run", append(on, "--set", "openlineage_url=http://127.0.0.1:1")...)
	does(cli.ExitUsage, "metrics_file and --on are for leadetl run", "", "part", on[2:]...)

	j.Put("lists/a.csv", clitest.EmailList(30))
	collector := clitest.StartCollector(t)
	does(cli.ExitTryAgain, "Temporal", "exit code 5", "run", append(on, "--set", "wait_for_input=0")...)
	if metrics, spans := collector.Taken(); metrics.Last("leadetl_run_read_rows_total", "") != 0 || len(spans) != 1 || spans[0].Attributes[0].Value.GetIntValue() != cli.ExitTryAgain {
		t.Errorf("sent %v, %v", metrics, spans)
	}
	if metrics, err := os.ReadFile(j.Path("on.prom")); err != nil || !strings.Contains(string(metrics), `leadetl_run_read_rows_total{file="on.prom"} 0`) {
		t.Errorf("metrics %s, %v", metrics, err)
	}
	does(cli.ExitDone, "30 rows", "", "survey", "--set", "wait_for_input=0")
	does(cli.ExitDone, "1 made now", "", "part") // without waiting
	does(cli.ExitDone, "30", "30 rows, 29 matched", "finish")
	if metrics, spans := collector.Taken(); len(metrics)+len(spans) > 0 {
		t.Errorf("steps sent %v, %v", metrics, spans)
	}
}
