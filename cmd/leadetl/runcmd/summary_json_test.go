package runcmd

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWriteFileKeepsWhatIsNoFile: links and devices are written to, not replaced.
func TestWriteFileKeepsWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"the first, which is longer", "the second"} {
		if err := writeFile(link, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(target); err != nil || string(got) != text {
			t.Errorf("behind the link is %q, %v; want %q", got, err, text)
		}
		if i, err := os.Lstat(link); err != nil || i.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link is %v, %v", i.Mode(), err)
		}
	}
	null := filepath.Join(dir, "null")
	if err := os.Symlink(os.DevNull, null); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(null, []byte("text")); err != nil {
		t.Error(err)
	}
	if i, err := os.Stat(os.DevNull); err != nil || i.Mode()&os.ModeDevice == 0 {
		t.Errorf("%s is %v, %v", os.DevNull, i.Mode(), err)
	}
}
