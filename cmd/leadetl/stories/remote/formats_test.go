//go:build unix

package remote

import (
	"cmp"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/checksum"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
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
	manifest := func(text string) func(string) error {
		sealed, err := appendlog.Seal("manifest-0000000003.json", []byte(text))
		return func(state string) error {
			return errors.Join(err, write("answers/manifest-0000000003.json", string(sealed))(state))
		}
	}
	for _, c := range []struct {
		name string
		put  func(state string) error
		want []string
		code int // 0 for that of wrong usage
	}{
		{"older answers", write("answers/answers.sqlite", "SQLite format 3"), []string{"answers.sqlite has a format that is not known" + number, export}, 0},
		{"newer answers", manifest(`{"format":99}`), []string{"manifest-0000000003.json has format 99" + number, export}, 0},
		{"answers of another program", manifest(`{}`), []string{"manifest-0000000003.json has no format number" + number, export}, 0},
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
	sealed := func(object, text string) string {
		record, err := appendlog.Seal(object, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(record)
	}
	later := func(object string) string { // a record of the next form, with the right checksum
		record := []byte(sealed(object, "{}"))
		record[3]++
		binary.LittleEndian.PutUint32(record[36:], checksum.Of(record[:36], record[40:]))
		return string(record)
	}
	const service, first = "answers/0011223344556677/", "manifest-0000000001.json"
	on := func(command ...string) []string {
		return clitest.OnStore(server.URL, append(command, "--state", "s3://"+clitest.S3Bucket+"/state/")...)
	}
	for _, c := range []struct {
		name, object, text string
		want               []string
	}{
		{"a run without a mark", "runs/0011223344556677/job.json", "{}", []string{"/state/ has no format number" + number, export}},
		{"nights without a mark", "nights/0011223344556677.json", "[]", []string{"/state/ has no format number" + number, export}},
		{"an older mark", "format.json", `{"format":1}`, []string{"/state/ has format 1" + number, export}},
		{"older answers", service + "v/0000000001.json", "{}", []string{"/v/ has a format that is not known" + number, export}},
		{"newer answers", service + first, sealed(first, `{"format":99}`), []string{first + " has format 99" + number, export}},
		{"a newer record", service + first, later(first), []string{first + " has format 3" + number, "the version of the program"}},
	} {
		t.Run("s3, "+c.name, func(t *testing.T) {
			j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(3))
			j.State, j.Store = []string{"--state", "s3://" + clitest.S3Bucket + "/state/"}, server.URL
			path := filepath.Join(server.Dir, clitest.S3Bucket, "state")
			if err := errors.Join(os.RemoveAll(path), write(c.object, c.text)(path)); err != nil {
				t.Fatal(err)
			}
			all := [][]string{on("answers", "stat"), on("doctor"), on("doctor", "--repair")}
			if !strings.HasPrefix(c.object, service) { // which is another one
				all = append(all, j.Args(), append([]string{"plan"}, j.Args()[1:]...))
			}
			for _, args := range all {
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

// TestOtherFormatsOfData: reference data, a dataset and the state of a service in another format are refused, too.
func TestOtherFormatsOfData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	program := func(args ...string) {
		t.Helper()
		if p := clitest.StartProgram(t, args...); p.Code() != cli.ExitDone {
			t.Fatalf("%q: %s", args, p.Said.String())
		}
	}
	list := at("list.csv")
	if err := os.WriteFile(list, []byte("email,domain\na@one.example,one.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(out string) []string {
		return []string{"run", "email_to_hem", "--in", list, "--out", out, "--state", at("state"), "--quiet"}
	}
	program(run(at("data"))...)
	program("directory", "import", "--directory", at("directory"), "--companies", list)
	program("admin", "org", "create", "org", "--state", at("service"))
	numbered := func(file string) func(number string) error {
		return func(number string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			_, rest, found := strings.Cut(string(text), ",\n")
			if !found {
				return fmt.Errorf("%s: %s", file, text)
			}
			return os.WriteFile(file, []byte(`{"format": `+number+",\n"+rest), 0o600)
		}
	}
	for _, c := range []struct {
		name   string
		set    func(number string) error
		file   string
		number []string
		args   [][]string
	}{
		{"a dataset", numbered(at("data/_manifest.json")), "_manifest.json", []string{"0", "99"}, [][]string{
			{"verify", at("data")}, {"head", at("data")}, {"schema", "--dataset", at("data"), "--dialect", "duckdb"},
			{"changes", at("data"), at("data"), "--out", at("changes")}, run(at("data")), append([]string{"plan"}, run(at("data"))[1:8]...),
		}},
		{"reference data", numbered(at("directory/directory.json")), "directory.json", []string{"0", "99"}, [][]string{
			{"directory", "stat", "--directory", at("directory")}, {"directory", "verify", "--directory", at("directory")},
			{"directory", "import", "--directory", at("directory"), "--companies", list},
			{"run", "ip_to_company", "--in", list, "--id-column", "email", "--directory", at("directory"), "--out", at("other"), "--state", at("state")},
			{"serve", "--directory", at("directory"), "--state", at("service")},
		}},
		{"the state of a service", func(number string) error {
			db, err := sql.Open("sqlite", at("service/service.sqlite"))
			if err == nil {
				_, err = db.ExecContext(t.Context(), "PRAGMA user_version = "+number)
				err = errors.Join(err, db.Close())
			}
			return err
		}, "service.sqlite", []string{"0", "1", "99"}, [][]string{
			{"admin", "org", "list", "--state", at("service")}, {"admin", "backup", "--state", at("service"), at("backup.sqlite")},
			{"serve", "--directory", at("directory"), "--state", at("service")},
		}},
	} {
		for _, number := range c.number {
			t.Run(c.name+" "+number, func(t *testing.T) {
				if err := c.set(number); err != nil {
					t.Fatal(err)
				}
				has := " has format " + number
				if number == "0" {
					has = " has no format number"
				}
				for _, args := range c.args {
					refuses(t, args, cli.ExitUsage, []string{c.file + has + ", and this program reads format "})
				}
			})
		}
		if c.name == "reference data" { // serve reads it first
			if err := c.set("4"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
