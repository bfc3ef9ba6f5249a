package wire

import (
	"path/filepath"
	"testing"
)

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
