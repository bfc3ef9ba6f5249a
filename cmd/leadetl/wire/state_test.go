package wire

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// TestHoldsAnswers: a folder that a killed run left empty holds none.
func TestHoldsAnswers(t *testing.T) {
	state := t.TempDir()
	folder := filepath.Join(state, AnswersFolder)
	if HoldsAnswers(t.Context(), state) {
		t.Error("no folder holds answers")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil || HoldsAnswers(t.Context(), state) {
		t.Errorf("an empty folder holds answers, %v", err)
	}
	s, err := answers.Open(t.Context(), answers.InFolder(folder), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || !HoldsAnswers(t.Context(), state) {
		t.Errorf("a folder with a database holds no answers, %v", err)
	}
}

func TestDefaultStateDir(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	for xdg, want := range map[string]string{
		"":            "/home/ada/.local/state/leadetl",
		"/var/state":  "/var/state/leadetl",
		"relative/to": "/home/ada/.local/state/leadetl", // to be ignored. Source: XDG Base Directory Specification 0.8
	} {
		t.Setenv("XDG_STATE_HOME", xdg)
		if got := DefaultStateDir(); got != filepath.FromSlash(want) {
			t.Errorf("with XDG_STATE_HOME=%q it is %s, want %s", xdg, got, want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	for _, home := range []string{"", "relative/to"} {
		t.Setenv("HOME", home)
		if got := DefaultStateDir() + DefaultServiceStateDir(); got != "" {
			t.Errorf("with HOME=%q it is %s, want none", home, got)
		}
	}
}
