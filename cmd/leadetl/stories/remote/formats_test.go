//go:build unix

package remote

import (
	"cmp"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/s3test"
)

// TestOtherFormats: a state in another format is refused before any call, with its number and with what
// to do. It is never taken for an empty one, and stays as it is.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	s, url := clitest.StartService(t, badservice.DefaultOptions())
	const number, export = ", and this program reads format ", "leadetl answers export"
	write := func(name, text string) func(string) error {
		return func(state string) error {
			path := filepath.Join(state, name)
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		}
	}
	schema := func(file, number string) func(string) error {
		return func(state string) error {
			path := filepath.Join(state, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
				return err
			}
			db, err := sql.Open("sqlite", path)
			if err == nil {
				_, err = db.ExecContext(t.Context(), "CREATE TABLE answers(x); PRAGMA user_version = "+number)
				err = errors.Join(err, db.Close())
			}
			return err
		}
	}
	for _, c := range []struct {
		name string
		put  func(state string) error
		want []string
		code int // 0 for that of wrong usage
	}{
		{"older answers", schema("answers/answers.sqlite", "3"), []string{"answers.sqlite has format 3" + number, export}, 0},
		{"newer answers", schema("answers/answers.sqlite", "99"), []string{"answers.sqlite has format 99" + number, export}, 0},
		{"answers of another program", schema("answers/answers.sqlite", "0"), []string{"answers.sqlite has no format number" + number, export}, 0},
		{"an unfinished run from before the mark", write("runs/0011223344556677/journal.jsonl", "{}\n"), []string{"state has no format number" + number, export}, 0},
		{"nights from before the mark", write("nights/0011223344556677.json", "[]\n"), []string{"state has no format number" + number, export}, 0},
		{"an older mark", write("format.json", `{"format":1}`), []string{"state has format 1" + number, export}, 0},
		{"a newer mark", write("format.json", `{"format":99}`), []string{"state has format 99" + number, export}, 0},
		{"a damaged mark", write("format.json", "{"), []string{"state: format.json is damaged", "put it back from a backup"}, cli.ExitFailure},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(3))
			if err := c.put(j.Path("state")); err != nil {
				t.Fatal(err)
			}
			before := clitest.Files(t, j.Path("state"))
			for _, args := range [][]string{
				j.Args(), append([]string{"plan"}, j.Args()[1:]...), j.Args("--overwrite"),
				{"answers", "stat", "--state", j.Path("state")}, {"answers", "export", "--state", j.Path("state")},
				{"answers", "forget", "--older-than", "1s", "--state", j.Path("state")},
			} {
				refuses(t, args, cmp.Or(c.code, cli.ExitUsage), c.want)
			}
			if after := clitest.Files(t, j.Path("state")); len(after) != len(before) {
				t.Errorf("the state had %d files, and has %d", len(before), len(after))
			}
			if _, err := os.Stat(j.Path("out")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it made the dataset: %v", err)
			}
		})
	}
	server := s3test.Start(t, clitest.S3Bucket)
	at := []string{"--state", "s3://" + clitest.S3Bucket + "/state/", "--s3-endpoint", server.URL, "--s3-path-style"}
	for _, c := range []struct {
		name, object, text string
		want               []string
	}{
		{"a run without a mark", "runs/0011223344556677/job.json", "{}", []string{"/state/ has no format number" + number, export}},
		{"nights without a mark", "nights/0011223344556677.json", "[]", []string{"/state/ has no format number" + number, export}},
		{"an older mark", "format.json", `{"format":1}`, []string{"/state/ has format 1" + number, export}},
	} {
		t.Run("s3, "+c.name, func(t *testing.T) {
			j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(3))
			j.State = at
			path := filepath.Join(server.Dir, clitest.S3Bucket, "state")
			if err := errors.Join(os.RemoveAll(path), write(c.object, c.text)(path)); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{j.Args(), append([]string{"plan"}, j.Args()[1:]...), append([]string{"answers", "stat"}, at...)} {
				refuses(t, args, cli.ExitUsage, c.want)
			}
		})
	}
	if s.Seen() > 0 {
		t.Errorf("%d calls are made", s.Seen())
	}
}

func refuses(t *testing.T, args []string, code int, want []string) {
	t.Helper()
	p := clitest.StartProgram(t, args...)
	got, said := p.Code(), p.Said.String()
	for _, text := range want {
		if got != code || !strings.Contains(said, text) {
			t.Errorf("%s: exit code %d, without %q: %s", strings.Join(args, " "), got, text, clitest.Tail(said))
		}
	}
}
