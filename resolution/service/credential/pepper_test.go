package credential_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution/service/credential"
)

// known is the pepper of the vectors.
const known = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

func loadKnown(t testing.TB) credential.Pepper {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pepper")
	if err := os.WriteFile(path, []byte(known+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := credential.LoadPepper(t.Context(), path, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHash holds hashes another program worked out (HKDF of Python's
// cryptography, then its hmac).
func TestHash(t *testing.T) {
	p := loadKnown(t)
	for _, c := range []struct{ key, want string }{
		{"lrk_live_000000000000000000000000000000002u3ncV", "c40cc0975c83f6563c1ed2ff5385c5b114240871e8801be729edde381b5c18b1"},
		{"lrk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV1nejoi", "319d882bc2a0e178ae60f65078e6518908e60f5683acef6a9850ba59a2b07f35"},
	} {
		hash := p.Hash(c.key)
		if got := hex.EncodeToString(hash[:]); got != c.want {
			t.Errorf("Hash(%q) = %s, want %s", c.key, got, c.want)
		}
		if identified, ok := p.Identify(c.key); !ok || identified != hash {
			t.Errorf("Identify(%q) = %x, %v, want its hash", c.key, identified, ok)
		}
	}
}

// TestIdentifyMalformed: a malformed key has the hash of no key, above all not
// of the one it is nearly.
func TestIdentifyMalformed(t *testing.T) {
	p := loadKnown(t)
	key := credential.NewKey(false).Reveal()
	hashes := map[[32]byte]string{p.Hash(key): "the key"}
	var first [32]byte
	for i, malformed := range []string{"", key + "0", key[:46], key + "\x00", strings.ToUpper(key), strings.Repeat("a", 1<<20)} {
		hash, ok := p.Identify(malformed)
		if ok {
			t.Errorf("%.60q is well formed", malformed)
		}
		if whose := hashes[hash]; whose != "" {
			t.Errorf("%.60q has the hash of %s", malformed, whose)
		}
		if i == 0 {
			first = hash
		}
		if hash != first {
			t.Errorf("%.60q has a hash of its own", malformed)
		}
	}
}

func TestLoadPepper(t *testing.T) {
	for _, c := range []struct {
		name, content string
		mode          fs.FileMode
		err           string // part of the error; "" for none
	}{
		{"hex", known, 0o600, ""},
		{"with a line end", known + "\n", 0o400, ""},
		{"in capitals", strings.ToUpper(known), 0o600, ""},
		{"too short", known[2:], 0o600, "does not hold 64 hex digits"},
		{"too long", known + "00", 0o600, "does not hold 64 hex digits"},
		{"no hex", "zz" + known[2:], 0o600, "does not hold 64 hex digits"},
		{"empty", "", 0o600, "is empty"},
		{"readable for the process's group", known, 0o440, ""},
		{"writable for the group", known, 0o660, "open to other users: chmod 600"},
		{"readable for all", known, 0o644, "open to other users: chmod 600"},
	} {
		path := filepath.Join(t.TempDir(), "pepper")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		for _, create := range []bool{false, true} {
			_, err := credential.LoadPepper(t.Context(), path, create)
			switch {
			case c.err == "" && err != nil, c.err != "" && err == nil:
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			case err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), known[2:])):
				t.Errorf("%s: error %v, want %q and not the content", c.name, err, c.err)
			}
		}
		if content, err := os.ReadFile(path); err != nil || string(content) != c.content {
			t.Errorf("%s: the file was changed", c.name)
		}
	}
}

func TestCreatePepper(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pepper")
	if _, err := credential.LoadPepper(t.Context(), path, false); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want %v", err, fs.ErrNotExist)
	}
	made, err := credential.LoadPepper(t.Context(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info.Mode(), err)
	}
	wantAlone(t, path)
	for _, create := range []bool{false, true} {
		again, err := credential.LoadPepper(t.Context(), path, create)
		if err != nil || again.Hash("a") != made.Hash("a") {
			t.Errorf("create %v: another pepper, or %v", create, err)
		}
	}
	other, err := credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), "pepper"), true)
	if err != nil || other.Hash("a") == made.Hash("a") {
		t.Errorf("two files hold one pepper, or %v", err)
	}
	if _, err := credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), "none", "pepper"), true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: got %v, want %v", err, fs.ErrNotExist)
	}
}

// wantAlone fails if anything is beside path.
func wantAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v, want the pepper alone", entries, err)
	}
}

func TestCreatePepperAtOnce(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "pepper")
		var hashes [16][32]byte
		var done sync.WaitGroup
		for i := range hashes {
			done.Go(func() {
				p, err := credential.LoadPepper(t.Context(), path, true)
				if err != nil {
					t.Error(err)
					return
				}
				hashes[i] = p.Hash("a")
			})
		}
		done.Wait()
		for _, hash := range hashes {
			if hash != hashes[0] {
				t.Fatal("two peppers were made")
			}
		}
		wantAlone(t, path)
	}
}

// pepperFile tells this program, run again, to be one of several processes
// that want a pepper.
const pepperFile = "LEADETL_TEST_PEPPER_FILE"

func TestMain(m *testing.M) {
	path := os.Getenv(pepperFile)
	if path == "" {
		os.Exit(m.Run())
	}
	p, err := credential.LoadPepper(context.Background(), path, true)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%x\n", p.Hash("a"))
}

func TestCreatePepperByProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pepper")
	var printed [6]bytes.Buffer
	var processes [6]*exec.Cmd
	for i := range processes {
		processes[i] = exec.Command(os.Args[0])
		processes[i].Env = append(os.Environ(), pepperFile+"="+path)
		processes[i].Stdout = &printed[i]
		if err := processes[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range processes {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
		if printed[i].String() != printed[0].String() {
			t.Error("two processes have two peppers")
		}
	}
	wantAlone(t, path)
}

func TestPepperIsNotShown(t *testing.T) {
	p := loadKnown(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb, p); got != "redacted" {
			t.Errorf("%s: got %s, want redacted", verb, got)
		}
	}
	if got, err := json.Marshal([]any{p}); err != nil || string(got) != "[{}]" {
		t.Errorf("JSON: got %s, %v, want [{}]", got, err)
	}
}

func TestSeal(t *testing.T) {
	p := loadKnown(t)
	for _, plain := range [][]byte{nil, []byte("a"), []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), bytes.Repeat([]byte{0}, 1<<16)} {
		sealed := p.Seal(plain)
		if got, err := p.Open(sealed); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes: got %d, %v", len(plain), len(got), err)
		}
		if len(plain) > 8 && bytes.Contains(sealed, plain) {
			t.Error("the plain text is in the sealed")
		}
		if bytes.Equal(sealed, p.Seal(plain)) {
			t.Error("two seals are the same")
		}
	}
}

// TestOpen holds what another program sealed (AESGCM of Python's cryptography).
func TestOpen(t *testing.T) {
	p := loadKnown(t)
	for _, c := range []struct{ sealed, want string }{
		{"010000000000000000000000005ed70765df33ffaf25306585ba9e1167", ""},
		{"01000102030405060708090a0b06c6aaad6541646a07bf45a234d05077588d6275139bd01be050b15fe5f568b0b8e599921f8e407bcec5938d8735c7eb8943fd467c0d",
			"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
	} {
		sealed, err := hex.DecodeString(c.sealed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Open(sealed); err != nil || string(got) != c.want {
			t.Errorf("Open(%s) = %q, %v, want %q", c.sealed, got, err, c.want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	p := loadKnown(t)
	sealed := p.Seal([]byte("a"))
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := p.Open(changed); !errors.Is(err, credential.ErrSeal) {
			t.Errorf("byte %d changed: got %v, want %v", i, err, credential.ErrSeal)
		}
		if _, err := p.Open(sealed[:i]); !errors.Is(err, credential.ErrSeal) {
			t.Errorf("cut to %d bytes: got %v, want %v", i, err, credential.ErrSeal)
		}
	}
	other, err := credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), "pepper"), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(sealed); !errors.Is(err, credential.ErrSeal) {
		t.Errorf("under another pepper: got %v, want %v", err, credential.ErrSeal)
	}
}

func TestExposedPepperIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pepper")
	if err := os.WriteFile(path, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	if _, err := credential.LoadPepper(t.Context(), path, true); !errors.Is(err, secret.ErrExposed) {
		t.Errorf("got %v, want %v", err, secret.ErrExposed)
	}
}

// The three cost the same: that is their point.
func BenchmarkIdentify(b *testing.B) {
	p := loadKnown(b)
	good := credential.NewKey(false).Reveal()
	for name, key := range map[string]string{"good": good, "cut": good[:20], "other": good[:46] + "-"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Identify(key)
			}
		})
	}
}
