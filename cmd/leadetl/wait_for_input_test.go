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

// TestWaitForInput: a run reads a list that comes later, and grows, as a whole.
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
		began := time.Now()
		var out, said bytes.Buffer
		code := program.Execute(t.Context(), []string{"run", "email_to_hem", "--in", "a.csv", "--out", "out", "--state", "state", "--set", "wait_for_input=2h"}, strings.NewReader(""), &out, &said)
		if took := time.Since(began); code != cli.ExitDone || took < 35*time.Minute || took > 37*time.Minute || strings.Count(said.String(), "waiting for the input") != 2 {
			t.Errorf("exit code %d after %s\n%s", code, took, &said)
		}
	})
	if got := clitest.ReadDataset(t, "out"); got.Count(t, "outcome", "matched") != 10 {
		t.Error("rows are missing")
	}
}
