//go:build unix

package s3

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestDropOnS3: a prefix of all downloads suppresses as a folder does, and the newest list of each
// kind is answered.
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
	answers := t.TempDir()
	j.Run(0, "s3://leads/in/", "s3://leads/out", "--quiet", "--suppress", "s3://leads/drop/", "--drop-answers", answers)
	if n := clitest.ReadDataset(t, j.Object("out")).Count(t, "outcome", "suppressed"); n != 2 {
		t.Errorf("%d rows are suppressed, want 2", n)
	}
	files, err := os.ReadDir(answers)
	if err != nil || len(files) != 1 {
		t.Fatalf("answers: %v, %v", files, err)
	}
	if said, err := os.ReadFile(filepath.Join(answers, "20260901_1234_Email.csv")); string(said) != "Id,Status\nB1,3\n" {
		t.Errorf("%q, %v", said, err)
	}
}
