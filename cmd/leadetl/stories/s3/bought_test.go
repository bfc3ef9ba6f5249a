//go:build unix

package s3

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// oddly answers with the bytes after those that were asked for, as caches did that mix
// answers up.
func oddly(w http.ResponseWriter, r *http.Request, data []byte) bool {
	from, to, ok := s3test.Asked(r)
	if to = min(to+1, len(data)); !ok || from+1 >= to {
		return false
	}
	return s3test.Send(w, http.StatusPartialContent, fmt.Sprintf("bytes %d-%d/%d", from+1, to-1, len(data)), data[from+1:to])
}

// TestOddAnswersOfS3: lists, suppression lists, imports, a paid state and datasets on
// S3 are read right, or not at all.
func TestOddAnswersOfS3(t *testing.T) {
	s3test.Setenv(t)
	t.Setenv(runcmd.APIKeyVariable, clitest.RemoteKey)
	emails := "email\n"
	people := "network_url,first_name,email\n"
	for i := range 100 {
		emails += fmt.Sprintf("person%d@mail.example\n", i)
		people += fmt.Sprintf("https://linkedin.com/in/person-%d,Jo,person%d@mail.example\n", i, i)
	}
	store := s3test.NewFake(t, map[string]string{
		"leads/in/emails.csv": emails, "leads/people/people.csv": people,
		"leads/opted-out/a.csv": strings.TrimPrefix(emails, "email\n")[:strings.Index(emails, "person10@")-len("email\n")], // ten of them
	})
	for name, value := range map[string]string{"ENDPOINT": store.URL, "PATH_STYLE": "true", "GIVE_UP_AFTER": "5s"} {
		t.Setenv("LEADETL_S3_"+name, value)
	}
	service, url := clitest.StartService(t, badservice.DefaultOptions())
	paid := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(20), "--quiet")
	paid.State = []string{"--state", "s3://leads/state/"}
	clitest.Run(t, paid.Args("--out", "s3://leads/paid/")...)
	bought := len(service.BilledKeys())
	folder := t.TempDir()
	local := filepath.Join(folder, "emails.csv")
	if err := os.WriteFile(local, []byte(emails), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, []byte) bool
		listed func(string, int) int
		wrong  bool
	}{
		{"as asked", nil, nil, false},
		{"all of it", s3test.Whole, nil, false},
		{"listed smaller", nil, func(_ string, n int) int { return n * 2 / 5 }, false},
		{"listed larger", nil, func(_ string, n int) int { return n + 64 }, false},
		{"another range", oddly, nil, true},
		{"nothing", func(w http.ResponseWriter, _ *http.Request, _ []byte) bool { return s3test.Send(w, 200, "", nil) }, nil, true},
	} {
		store.Do(c.answer)
		store.List(c.listed)
		out := fmt.Sprintf("%s/%d", folder, i)
		for _, command := range []struct {
			args []string
			want string // what it prints
		}{
			{[]string{"run", "email_to_hem", "--in", "s3://leads/in/", "--out", out + "/hems", "--state", out + "/state", "--suppress", "s3://leads/opted-out/*"}, "\n  rows        100"},
			{[]string{"run", "email_to_hem", "--in", local, "--out", out + "/more", "--state", out + "/state", "--suppress", "s3://leads/opted-out/a.csv"}, "\n"},
			{[]string{"directory", "import", "--directory", out + "/directory", "--people", "s3://leads/people/"}, "people   100 rows"},
			{append(paid.Args("--out", out+"/paid"), "--offline"), ""},
			{[]string{"answers", "stat", "--state", "s3://leads/state/"}, "20"},
			{[]string{"verify", "s3://leads/paid/"}, "verified"},
			{[]string{"head", "s3://leads/paid/"}, "company_name"},
			{[]string{"report", "s3://leads/paid/", "--out", out + ".html"}, ".html"},
		} {
			args := command.args
			var printed, said bytes.Buffer
			code := program.Execute(context.Background(), args, strings.NewReader(""), &printed, &said)
			if c.wrong == (code == cli.ExitDone) || c.wrong && code != cli.ExitUsage || !c.wrong && !strings.Contains(printed.String(), command.want) {
				t.Errorf("%s: leadetl %s: exit code %d\n%s%s", c.name, strings.Join(args[:2], " "), code, printed.String(), said.String())
			}
		}
		if _, err := os.Stat(out + "/hems/_SUCCESS"); (err != nil) != c.wrong {
			t.Errorf("%s: the dataset: %v", c.name, err)
		}
	}
	if now := len(service.BilledKeys()); bought != 20 || now != bought {
		t.Errorf("%d keys were bought, then %d, want 20", bought, now)
	}
}
