package process

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

// asked names what the test's own program does in place of tests.
const asked = "LEADETL_TEST_PROCESS"

func TestMain(m *testing.M) {
	switch what := os.Getenv(asked); what {
	case "":
		os.Exit(m.Run())
	case "stop":
		ctx := Stopped()
		os.Stdout.WriteString("ready\n")
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond) // a second signal may come
		os.Exit(130)
	case "exit":
		Begin()
		os.Exit(7)
	default:
		Begin()
		fail(what)
	}
}

func fail(how string) {
	switch how {
	case "panic":
		go func() { panic("of another goroutine") }()
		select {}
	case "stack":
		debug.SetMaxStack(1 << 20)
		var deep func(n int) int
		deep = func(n int) int { return deep(n+1) + 1 }
		deep(0)
	case "memory":
		space := unix.Rlimit{Cur: 4 << 30, Max: 4 << 30}
		if unix.Setrlimit(unix.RLIMIT_AS, &space) == nil {
			var kept [][]byte
			for {
				kept = append(kept, make([]byte, 1<<30))
				runtime.KeepAlive(kept)
			}
		}
	case "file":
		size := unix.Rlimit{Cur: 10, Max: 10}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &size); err != nil {
			os.Exit(9)
		}
		if err := os.WriteFile("file", make([]byte, 20), 0o600); errors.Is(err, syscall.EFBIG) {
			os.Exit(1)
		}
	}
}

// program is the test's own program, which does something in a folder of its own.
func program(t *testing.T, what string, before ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append(before, self)
	c := exec.Command(words[0], words[1:]...)
	c.Dir, c.Env = t.TempDir(), append(os.Environ(), asked+"="+what)
	return c
}

// TestNeverTwo: however Go's runtime fails, the exit code is not 2, and there is no core file.
func TestNeverTwo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits memory as Linux does")
	}
	for what, want := range map[string]int{"panic": 134, "stack": 134, "memory": 134, "file": 1, "exit": 7} {
		if what == "memory" && raceDetector {
			continue // the detector has no room below that limit, and ends the process itself
		}
		for _, first := range []bool{false, true} {
			var before []string
			if first {
				if exec.Command("unshare", "--pid", "--fork", "true").Run() != nil {
					continue // not allowed here
				}
				before = []string{"unshare", "--pid", "--fork", "--kill-child"}
			}
			c := program(t, what, before...)
			_ = c.Run()
			code := c.ProcessState.ExitCode()
			if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
				code = 128 + int(status.Signal())
			}
			if code != want {
				t.Errorf("%s, as the first process %v: exit code %d, want %d", what, first, code, want)
			}
			if cores, _ := filepath.Glob(filepath.Join(c.Dir, "*core*")); len(cores) > 0 {
				t.Errorf("%s: %q", what, cores)
			}
		}
	}
}

// TestStopped: a terminal that closes ends the process as SIGTERM does, and more of its signals do
// no harm, unless they are ignored.
func TestStopped(t *testing.T) {
	for _, c := range []struct {
		name    string
		before  []string
		signals []syscall.Signal
		want    int
	}{
		{"SIGTERM", nil, []syscall.Signal{syscall.SIGTERM}, 130},
		{"SIGHUP", nil, []syscall.Signal{syscall.SIGHUP}, 130},
		{"several", nil, []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGHUP}, 130},
		{"SIGTERM after SIGHUP", nil, []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, 128 + 15},
		{"nohup", []string{"sh", "-c", `trap "" HUP; exec "$0"`}, []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM}, 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			if signal.Ignored(syscall.SIGHUP) && c.name != "SIGTERM" && c.before == nil {
				t.Skip("under nohup no process gets it")
			}
			p := program(t, "stop", c.before...)
			said, err := p.StdoutPipe()
			if err == nil {
				err = p.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := said.Read(make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
			for _, s := range c.signals {
				if err := p.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond) // else two may become one
			}
			_ = p.Wait()
			code := p.ProcessState.ExitCode()
			if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
				code = 128 + int(status.Signal())
			}
			if code != c.want {
				t.Errorf("exit code %d, want %d", code, c.want)
			}
		})
	}
	signal.Reset()
}

func TestGroupLimit(t *testing.T) {
	const none = math.MaxInt64
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no groups", nil, none},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, none},
		{"of a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000000\n"}, 1000000},
		{"of a group above", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2000\n"}, 2000},
		{"the least", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "3000\n", "sys/fs/cgroup/a/memory.high": "2500\n"}, 2500},
		{"a path of outside", map[string]string{"proc/self/cgroup": "0::/host/path\n", "sys/fs/cgroup/memory.max": "4000\n"}, 4000},
		{"version 1", map[string]string{"proc/self/cgroup": "4:cpu,memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "5000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 5000},
		{"no number", map[string]string{"proc/self/cgroup": "0::/\nx\n", "sys/fs/cgroup/memory.max": "a lot\n"}, none},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModePerm}
		}
		if got := groupLimit(root); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestAddressLimit: what ulimit -v leaves is a limit of Go's memory.
func TestAddressLimit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	if os.Getenv("LEADETL_TEST_LIMITED") != "" {
		limitMemory()
		limit := debug.SetMemoryLimit(-1)
		if most := int64(3 << 30); limit > most || limit < minMemory {
			t.Errorf("the limit is %d", limit)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", `ulimit -v 3000000 && exec "$0" -test.run TestAddressLimit`, self)
	c.Env = append(os.Environ(), "LEADETL_TEST_LIMITED=1", "GOMEMLIMIT=")
	if said, err := c.CombinedOutput(); err != nil || !bytes.Contains(said, []byte("PASS")) || strings.Contains(string(said), "no tests") {
		t.Errorf("%v: %s", err, said)
	}
}
