//go:build unix

package remote

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestRemoteSuppressed runs a list of people, three of whom turn out to be on
// suppression lists: one by the row itself, who is never asked about, one by
// the email and one by the phone number of the answer, who are paid for and are
// nowhere in the dataset.
func TestRemoteSuppressed(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	list.WriteString("id,network_url\n")
	for i := range 40 {
		fmt.Fprintf(&list, "row-%d-,https://network.example/in/canary-%d-\n", i, i)
	}
	flags := []string{"--set", "network_hosts=network.example", "--set", "compression=none", "--select", "all", "--set", "rows_per_part=7"}
	_, url := clitest.StartService(t, badservice.DefaultOptions())
	open := clitest.NewRemoteJob(t, "enrichment", url, list.String(), flags...)
	open.Run(cli.ExitDone)
	all := clitest.ReadDataset(t, open.Path("out"))
	cell := func(d *clitest.Dataset, row int, column string) string { return d.Rows[row][d.Column(t, column)] }
	var found []int
	for i := range all.Rows {
		if cell(all, i, "outcome") == "matched" {
			found = append(found, i)
		}
	}
	if len(found) < 3 {
		t.Fatalf("%d matched rows", len(found))
	}
	byRow, byEmail, byPhone := found[0], found[1], found[len(found)-1]
	phone := cell(all, byPhone, "phone")
	digest := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return base64.StdEncoding.EncodeToString(s[:])
	}

	s, url := clitest.StartService(t, badservice.DefaultOptions())
	j := clitest.NewRemoteJob(t, "enrichment", url, list.String(), append(flags, "--suppress", filepath.Join(open.Folder, "*.list"), "--log-level", "debug")...)
	for name, text := range map[string]string{
		"rows.list":   cell(all, byRow, "key") + "\n",
		"emails.list": digest(cell(all, byEmail, "email")) + "\n",
		"phones.list": "ID,Hash\nAb3dE6gH9kLm," + digest(phone[len(phone)-10:]) + "\n",
	} {
		if err := os.WriteFile(open.Path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := j.Run(cli.ExitDone)
	got := clitest.ReadDataset(t, j.Path("out"))
	for i := range got.Rows {
		reason := map[int]string{byRow: "suppressed:network_url", byEmail: "suppressed_answer:email", byPhone: "suppressed_answer:phone"}[i]
		for c, column := range got.Names {
			want := all.Rows[i][c]
			switch {
			case column == "source", reason == "" && (column == "resolved_at" || column == "resolution_id"):
				continue // of another folder and another service
			case reason == "", column == "source_row":
			case column == "outcome":
				want = "suppressed"
			case column == "reason":
				want = reason
			case i != byRow && (column == "credits" || column == "answered_by"): // it was paid for
			default:
				want = "null"
			}
			if got.Rows[i][c] != want {
				t.Errorf("row %d, %s: %q, want %q", i+1, column, got.Rows[i][c], want)
			}
		}
	}
	if n := s.Billed(cell(all, byRow, "key")); n != 0 {
		t.Errorf("who is listed was billed for %d times", n)
	}
	for _, i := range []int{byRow, byEmail, byPhone} {
		for _, column := range []string{"id", "key", "email", "hem_sha256"} {
			value := cell(all, i, column)
			clitest.RequireNowhere(t, j.Path("out"), value)
			if text := p.Said.String() + p.Printed.String(); strings.Contains(text, value) {
				t.Errorf("%s of a suppressed row was said", column)
			}
		}
	}
}
