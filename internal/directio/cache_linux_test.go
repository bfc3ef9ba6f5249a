package directio

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// bypasses reports whether the flag of a file says so.
func bypasses(t *testing.T, file *os.File) bool {
	t.Helper()
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_DIRECT != 0
}

// TestBypass follows the flag of a file: only full buffers go past the page cache.
func TestBypass(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := bypassCache(file, true); errors.Is(err, unix.EINVAL) {
		t.Skip("the temporary folder takes no writes past the page cache")
	} else if err := errors.Join(err, bypassCache(file, false)); err != nil {
		t.Fatal(err)
	}
	w := NewLarge(file, sha256.New())
	write := func(size int, want bool) {
		t.Helper()
		if _, err := w.Write(content(size)); err != nil {
			t.Fatal(err)
		}
		if got := bypasses(t, file); got != want {
			t.Errorf("after %d more bytes, past the page cache: %v, want %v", size, got, want)
		}
	}
	write(bufferBytes-1, false)
	write(1, true)
	write(bufferBytes+1, true)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if bypasses(t, file) {
		t.Error("after Flush, the flag is set")
	}
	if info, err := file.Stat(); err != nil || info.Size() != 2*bufferBytes+1 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// TestRefusedWrite: a file system that accepts the flag may still refuse the writes. So
// does every file system if they are not aligned.
func TestRefusedWrite(t *testing.T) {
	t.Parallel()
	for on, dir := range folders(t) {
		file, err := os.Create(filepath.Join(dir, "file"))
		if err != nil {
			t.Fatal(err)
		}
		sum, want := sha256.New(), content(2*bufferBytes+17)
		if _, err := file.Write(want[:1]); err != nil {
			t.Fatal(err)
		}
		w := NewLarge(file, sum)
		w.at = 1
		if err := writeInPieces(w, want[1:], 1000); err != nil {
			t.Errorf("%s: %v", on, err)
		}
		if got, err := os.ReadFile(file.Name()); err != nil || string(got) != string(want) {
			t.Errorf("%s: other content, %v", on, err)
		}
		if hash := sha256.Sum256(want[1:]); string(sum.Sum(nil)) != string(hash[:]) {
			t.Errorf("%s: another hash", on)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

const limitedFile = "LEADETL_TEST_LIMITED_FILE"

// TestLimited ends a large file in the middle of a buffer, as a full disk or a quota does,
// by limiting the size of files. A process of its own has the limit.
func TestLimited(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(limitedFile); path != "" {
		limited(t, path)
		return
	}
	for on, dir := range folders(t) {
		for _, limit := range []int{bufferBytes - 100, 2*bufferBytes + alignment, 2*bufferBytes + 100} {
			path := filepath.Join(dir, fmt.Sprint(limit))
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			test := exec.Command(os.Args[0], "-test.run=^TestLimited$")
			test.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", limitedFile, limit, path), "GORACE=atexit_sleep_ms=0")
			if out, err := test.CombinedOutput(); err != nil {
				t.Errorf("%s, %d bytes: %v\n%s", on, limit, err, out)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if want := content(4 * bufferBytes); !strings.HasPrefix(string(want), string(got)) {
				t.Errorf("%s: the %d bytes before the limit are others", on, len(got))
			}
		}
	}
}

// limited writes to a file up to a limit.
func limited(t *testing.T, limitAndPath string) {
	text, path, _ := strings.Cut(limitAndPath, " ")
	limit, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Fatal(err)
	}
	w := NewLarge(file, sha256.New())
	err = writeInPieces(w, content(4*bufferBytes), 256<<10)
	if !errors.Is(err, unix.EFBIG) || err.Error() != "write "+path+": file too large" {
		t.Errorf("%v, want %v", err, unix.EFBIG)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}
