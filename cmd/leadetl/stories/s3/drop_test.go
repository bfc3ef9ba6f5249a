//go:build unix

package s3

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestDropOnS3: a prefix of all downloads suppresses as a folder does, and the newest list of each
// kind is answered, in a folder and on S3. A rerun does nothing until there is a download more.
func TestDropOnS3(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	list := func(id, address string) string {
		sum := sha256.Sum256([]byte(address))
		return "ID,Hash\n" + id + "," + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	w, err := z.Create("20260901_1234_Email.csv")
	if err == nil {
		_, err = w.Write([]byte(list("B1", "two@x.example")))
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	j.Put("in/people.csv", "email\none@x.example\ntwo@x.example\nthree@x.example\n")
	j.Put("drop/20260801_1234_Email.csv", list("A1", "one@x.example"))
	j.Put("drop/september.zip", archive.String())
	folder := t.TempDir()
	to := func(answers string, code int, flags ...string) string {
		return j.Run(code, "s3://leads/in/", "s3://leads/out", append(flags, "--suppress", "s3://leads/drop/", "--drop-answers", answers)...)
	}
	requireAnswers := func(folder string, want string) {
		t.Helper()
		files, err := os.ReadDir(folder)
		if err != nil || len(files) != 1 {
			t.Fatalf("answers: %v, %v", files, err)
		}
		if said, err := os.ReadFile(filepath.Join(folder, files[0].Name())); files[0].Name()+"\n"+string(said) != want {
			t.Errorf("%s: %q, %v; want %q", files[0].Name(), said, err, want)
		}
	}
	const september = "20260901_1234_Email.csv\nId,Status\nB1,3\n"
	to(folder, 0)
	if n := clitest.ReadDataset(t, j.Object("out")).Count(t, "outcome", "suppressed"); n != 2 {
		t.Errorf("%d rows are suppressed, want 2", n)
	}
	requireAnswers(folder, september)
	if said := to("s3://leads/answers/", cli.ExitUsage); !strings.Contains(said, "s3://leads/answers/ lacks responses that only a new run can write") {
		t.Error(said)
	}
	to("s3://leads/answers/", 0, "--overwrite")
	requireAnswers(j.Object("answers"), september)
	to("s3://leads/answers/", 0) // these are there
	if said := to("s3://leads/drop/answers/", cli.ExitUsage); !strings.Contains(said, "the next run would read the responses in s3://leads/drop/answers/ as lists") {
		t.Error(said)
	}
	j.Put("drop/20261017_1234_Email.csv", list("C1", "three@x.example"))
	if said := to("s3://leads/answers/", cli.ExitUsage); !strings.Contains(said, "suppression lists changed") {
		t.Error(said)
	}
	to("s3://leads/later/", 0, "--overwrite")
	requireAnswers(j.Object("later"), "20261017_1234_Email.csv\nId,Status\nC1,3\n")
	j.Put("drop/notes.txt", "Downloads of the platform\nAsk before you delete\n")
	if said := to("s3://leads/later/", cli.ExitUsage, "--overwrite"); !strings.Contains(said, "s3://leads/drop/notes.txt is no suppression list") {
		t.Error(said)
	}
}
