package keyed_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
)

// answerFields are those of a stored answer: key, received, outcome, reason, resolver, status,
// identifier, request, asked key and body.
var answerFields = []bool{false, false, true, true, true, true, false, false, false, false}

// answerBody makes an answer 559 bytes long, in the file.
var answerBody = `{"lead":{"about":"` + strings.Repeat("abcdefghijkl", 32) + `"}}`

// answerKey is the key of an answer: 32 bytes of a hash.
func answerKey(i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "scope\x00network.example/in/person-%d", i))
	return string(sum[:])
}

// BenchmarkAnswers keeps stored answers in eight files: it builds and merges them, opens them, looks
// answers up with their bodies in random order, and goes through all. KEYED_ANSWERS is their number.
func BenchmarkAnswers(b *testing.B) {
	n := 40_000
	if text := os.Getenv("KEYED_ANSWERS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	const count = 8
	in, all := disk.Dir(b.TempDir()), b // which closes the files at its end
	each := func(b *testing.B, n int, do func()) {
		began := cpu()
		for b.Loop() {
			do()
		}
		b.ReportMetric(float64((cpu()-began).Nanoseconds())/1e3/float64(b.N*n), "µs-cpu/answer")
	}
	var files keyed.Files
	layers := make([][]answer, count)
	for g := range layers {
		layers[g] = sortedAnswers(g*n/count, (g+1)*n/count)
	}
	b.Run("build", func(b *testing.B) {
		each(b, n, func() {
			files = files[:0]
			for g, layer := range layers {
				files = append(files, buildAnswers(all, in, fmt.Sprint(g), layer))
			}
		})
	})
	b.Run("open", func(b *testing.B) {
		each(b, n, func() {
			for g := range count {
				f, err := keyed.Open(in, fmt.Sprint(g), len(answerFields))
				if err := errors.Join(err, f.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("in order", func(b *testing.B) {
		each(b, n, func() {
			got := 0
			for _, err := range files.InOrder(b.Context()) {
				if got++; err != nil {
					b.Fatal(err)
				}
			}
			if got != n {
				b.Fatal(got)
			}
		})
	})
	lookUp(b, "look up", n, files, each)
	b.Run("verify", func(b *testing.B) {
		each(b, n, func() {
			for _, f := range files {
				if _, _, err := f.Verify(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	var one *keyed.File
	b.Run("merge", func(b *testing.B) {
		each(b, n, func() { one = merged(all, in, "merged", answerFields, files) })
	})
	lookUp(b, "look up in one", n, keyed.Files{one}, each)
}

// lookUp looks all answers up, 256 at a time.
func lookUp(b *testing.B, name string, n int, files keyed.Files, each func(*testing.B, int, func())) {
	keys := make([]string, n)
	for to, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		keys[to] = answerKey(i)
	}
	const batch = 256
	rows, fields := make([]uint32, batch), make([]string, len(answerFields))
	var arena keyed.Arena
	b.Run(name, func(b *testing.B) {
		each(b, n, func() {
			for keys := range slices.Chunk(keys, batch) {
				if err := guarded(func() {
					arena.Reset()
					for _, f := range slices.Backward(files) {
						f.FindAll(keys, rows[:len(keys)])
						for _, row := range rows[:len(keys)] {
							if row != keyed.None {
								f.Read(row, &arena, fields)
							}
						}
					}
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// answer is an answer to write, by its number.
type answer struct {
	key string
	i   int
}

// sortedAnswers are the answers of a file in the order of their keys.
func sortedAnswers(from, to int) (sorted []answer) {
	for i := from; i < to; i++ {
		sorted = append(sorted, answer{answerKey(i), i})
	}
	slices.SortFunc(sorted, func(a, b answer) int { return strings.Compare(a.key, b.key) })
	return sorted
}

// buildAnswers writes a file of answers.
func buildAnswers(b *testing.B, in disk.Folder, name string, answers []answer) *keyed.File {
	var received [8]byte
	return committed(b, in, name, answerFields, func(add func(...string) error) error {
		for _, a := range answers {
			binary.LittleEndian.PutUint64(received[:], uint64(a.i))
			number := strconv.Itoa(a.i)
			if err := add(a.key, string(received[:]), "matched", "", "bench", "1", "res_0193f5a0c1e87a6fb2f3a1d4c5e6f708",
				"req_0123456789"+number, "network.example/in/person-"+number, answerBody); err != nil {
				return err
			}
		}
		return nil
	})
}

// cpu is the processor time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
