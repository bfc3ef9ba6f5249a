package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
)

// TestWaitForInput: a run reads a list that comes later, and grows, as a whole. A finished night does not wait, unless
// it is made anew.
func TestWaitForInput(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		go func() {
			time.Sleep(30*time.Minute - time.Second)
			for i := range 10 {
				if err := os.WriteFile("a.csv", []byte("email\n"+strings.Repeat("a@x.example\n", i+1)), 0o644); err != nil {
					t.Error(err)
				}
				time.Sleep(30 * time.Second)
			}
		}()
		for _, c := range []struct {
			more        []string
			least, most time.Duration
			tells       int
		}{
			{nil, 35 * time.Minute, 37 * time.Minute, 2},
			{nil, 0, time.Second, 0}, // the night is finished
			{[]string{"--overwrite"}, 0, 2 * time.Minute, 1},
		} {
			began := time.Now()
			var out, said bytes.Buffer
			code := program.Execute(t.Context(), append([]string{"run", "email_to_hem", "--in", "a.csv", "--out", "out", "--state", "state", "--set", "wait_for_input=2h"}, c.more...), strings.NewReader(""), &out, &said)
			if took := time.Since(began); code != cli.ExitDone || took < c.least || took > c.most || strings.Count(said.String(), "waiting for the input") != c.tells {
				t.Errorf("%q: exit code %d after %s\n%s", c.more, code, took, &said)
			}
		}
	})
	if got := clitest.ReadDataset(t, "out"); got.Count(t, "outcome", "matched") != 10 {
		t.Error("rows are missing")
	}
}
