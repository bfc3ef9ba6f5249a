//go:build unix

package remote

import (
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// hookPath is the secret of the address of a hook.
const hookPath = "/services/T0HOOK/canary-of-the-hook"

// hook takes notices as a chat does.
type hook struct {
	*httptest.Server
	mu    sync.Mutex
	posts []string
	users []string
	paths []string
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.posts, h.users, h.paths = append(h.posts, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body)), append(h.users, user+":"+password), append(h.paths, r.URL.Path)
}

// taken are the members of each post since the last call.
func (h *hook) taken(t *testing.T) (all []map[string]any) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, post := range h.posts {
		var members map[string]any
		text, is := strings.CutPrefix(post, "POST application/json ")
		if err := json.Unmarshal([]byte(text), &members); err != nil || !is {
			t.Errorf("%s: %v", post, err)
		}
		all = append(all, members)
	}
	h.posts = nil
	return all
}

// addressFile holds an address.
func addressFile(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte(address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNotify: a chat hears once how each run ended, of no person, and the address of the hook is
// nowhere.
func TestNotify(t *testing.T) {
	h := newHook(t)
	t.Setenv("LEADETL_NOTIFY", h.URL+hookPath)
	l := clitest.ProfileList(60)
	o := badservice.DefaultOptions()
	o.HonourKeys, o.Latency = true, 100*time.Millisecond
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "enrichment", url, l.CSV, "--set", "network_hosts=network.example", "--idempotent", "--concurrency", "4")
	said := ""
	for _, c := range []struct {
		name  string
		code  int
		flags []string
		want  []string
	}{
		{"a budget", cli.ExitBudget, []string{"--max-calls", "10"}, []string{": exit code 4\n", "max-calls", "\nNext: a person raises the limit, then the same command resumes"}},
		{"a wrong setting", cli.ExitUsage, []string{"--set", "compression=zip"}, []string{": exit code 2\n", "compression", "\nNext: a person corrects it; never retry"}},
		{"a wrong key", cli.ExitUsage, []string{"--set", "colour=red"}, []string{": exit code 2\n", "colour"}},
		{"the end", cli.ExitDone, nil, []string{"enrichment to ", ": done\n60 rows, ", " matched (", " credits"}},
		{"nothing to do", cli.ExitDone, nil, []string{": done\n60 rows"}},
		{"too few rows", cli.ExitRejects, []string{"--overwrite", "--set", "min_rows=1000"}, []string{": exit code 3\n60 rows, ", "\nNext: a person looks at the dataset"}},
		{"nobody answers", cli.ExitTryAgain, []string{"--set", "give_up_after=1s"}, []string{": exit code 5\n", "\nNext: the scheduler runs the same command again later"}},
	} {
		job := j
		if c.code == cli.ExitTryAgain {
			job = clitest.NewRemoteJob(t, "enrichment", "http://127.0.0.1:1", l.CSV, "--set", "network_hosts=network.example")
		}
		said += job.Run(c.code, c.flags...).Said.String()
		posts := h.taken(t)
		if len(posts) != 1 || len(posts[0]) != 1 {
			t.Fatalf("%s: %q", c.name, posts)
		}
		text, _ := posts[0]["text"].(string)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, text)
			}
		}
		for _, personal := range []string{"canary", "Ada", "network.example/"} {
			if strings.Contains(text, personal) {
				t.Errorf("%s: %s is in\n%s", c.name, personal, text)
			}
		}
	}

	said += j.Run(cli.ExitDone, "--overwrite", "--set", "notify_body=summary").Said.String()
	if posts := h.taken(t); len(posts) != 1 || posts[0]["exit"] == nil || posts[0]["totals"] == nil || posts[0]["text"] != nil {
		t.Errorf("the summary is %v", posts)
	}
	before := s.Seen()
	p := j.Start("--out", j.Path("other"), "--state", j.Path("other-state"), "--rate", "2/s")
	clitest.Until(t, "there is a call", func() bool { return s.Seen() > before })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.Code(); code != cli.ExitInterrupted {
		t.Errorf("exit code %d\n%s", code, p.Said)
	}
	if posts := h.taken(t); len(posts) != 1 || !strings.Contains(posts[0]["text"].(string), "exit code 130\n") {
		t.Errorf("of an interruption: %q", posts)
	}
	if plan := clitest.StartProgram(t, append([]string{"plan"}, j.Args()[1:]...)...); plan.Code() != cli.ExitDone || len(h.taken(t)) > 0 {
		t.Errorf("plan\n%s", plan.Said)
	}
	if paths := slices.Compact(h.paths); !slices.Equal(paths, []string{hookPath}) {
		t.Errorf("posted to %q", paths)
	}

	place, _, _ := strings.Cut(strings.TrimPrefix(h.URL, "http://"), "/")
	requireNowhere(t, j.Folder, "canary-of-the-hook", place)
	for _, secret := range []string{"canary-of-the-hook", place} {
		if strings.Contains(said+p.Said.String(), secret) {
			t.Errorf("%s was printed", secret)
		}
	}
}

// requireNowhere looks for texts in all files of a folder.
func requireNowhere(t *testing.T, folder string, texts ...string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, text := range texts {
			if strings.Contains(string(data), text) {
				t.Errorf("%s is in %s", text, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNotifyTrouble: whatever a hook does, the run ends as it would have, with a warning that does not
// repeat its address.
func TestNotifyTrouble(t *testing.T) {
	t.Parallel()
	elsewhere := newHook(t)
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL+hookPath, http.StatusPermanentRedirect))
	defer redirecting.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = nil
	untrusted.StartTLS()
	defer untrusted.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for address, reason := range map[string]string{
		"http://127.0.0.1:1":               "it refuses connections",
		"http://hook.invalid":              "its host is not found",
		refusing.URL:                       "the answer has status 404",
		redirecting.URL:                    "the answer is a redirect, status 308, which is not followed",
		untrusted.URL:                      "its certificate is not trusted",
		"http://" + silent.Addr().String(): "no answer in time",
	} {
		began := time.Now()
		p := clitest.StartProgram(t, "run", "email_to_hem", "--in", clitest.Samples+"/emails.csv", "--out", filepath.Join(t.TempDir(), "out"), "--state", t.TempDir(),
			"--set", "notify_file="+addressFile(t, address+hookPath))
		code, said := p.Code(), p.Said.String()
		if code != cli.ExitDone || strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, `msg="the end of the run could not be told to notify" reason="`+reason+`"`) {
			t.Errorf("%s: exit code %d\n%s", address, code, said)
		}
		_, host, _ := strings.Cut(address, "://")
		if strings.Contains(said, "canary-of-the-hook") || strings.Contains(said, host) {
			t.Errorf("%s is in\n%s", address, said)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: the run took %s", address, took)
		}
	}
	if posts := elsewhere.taken(t); len(posts) > 0 {
		t.Errorf("the redirect was followed: %v", posts)
	}
}

// TestNotifyWays: a user in the address, a proxy, and settings that are refused.
func TestNotifyWays(t *testing.T) {
	h := newHook(t)
	proxied := newHook(t)
	for name, c := range map[string]struct {
		settings []string
		says     string // of refused settings
		code     int
	}{
		"a user":          {[]string{"notify_file=" + addressFile(t, strings.Replace(h.URL, "//", "//me:word@", 1)+hookPath)}, "", cli.ExitDone},
		"a proxy":         {[]string{"notify_file=" + addressFile(t, "http://chat.invalid"+hookPath)}, "", cli.ExitDone},
		"text of the job": {[]string{"notify=" + h.URL + hookPath}, "notify is a secret; write ${NAME} of an environment variable", cli.ExitUsage},
		"no address":      {[]string{"notify_file=" + addressFile(t, "canary-of-the-hook")}, "notify_file: this is not the address of a webhook, which begins with https://", cli.ExitUsage},
		"another form":    {[]string{"notify_body=card"}, `notify_body is "card"`, cli.ExitUsage},
		"a form of none":  {[]string{"notify_body=summary"}, "notify_body needs notify", cli.ExitUsage},
		"no file":         {[]string{"notify_file=nowhere"}, "notify_file: ", cli.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a proxy" {
				t.Setenv("HTTP_PROXY", proxied.URL)
			}
			args := []string{"run", "email_to_hem", "--in", clitest.Samples + "/emails.csv", "--out", filepath.Join(t.TempDir(), "out"), "--state", t.TempDir()}
			for _, s := range c.settings {
				args = append(args, "--set", s)
			}
			p := clitest.StartProgram(t, args...)
			code, said := p.Code(), p.Said.String()
			if code != c.code || !strings.Contains(said, c.says) || strings.Contains(said, "canary-of-the-hook") || strings.Contains(said, "level=WARN") {
				t.Errorf("exit code %d\n%s", code, said)
			}
		})
	}
	if len(h.taken(t)) != 1 || h.users[0] != "me:word" {
		t.Errorf("the hook with a user had %q", h.users)
	}
	if len(proxied.taken(t)) != 1 {
		t.Errorf("the proxy had %q", proxied.paths)
	}
}
