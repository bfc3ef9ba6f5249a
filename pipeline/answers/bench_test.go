package answers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

var benchScope = Scope{Service: "https://bench.example", Operation: resolution.Enrichment}

// benchAnswer has the size of one with a person.
var benchAnswer = Answer{Run: "bench", Outcome: Matched, Status: 200, Resolution: "res_0193f5a0c1e87a6fb2f3a1d4c5e6f708", Request: "req_0123456789abcdef",
	Credits: credits(1), Received: noon, Body: []byte(`{"lead":{"about":"` + strings.Repeat("abcdefghijkl", 32) + `"}}`)}

// BenchmarkPair buys answers: an intent, then the answer, each durable.
func BenchmarkPair(b *testing.B) {
	for _, callers := range []int{64, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			s, err := Open(b.Context(), InFolder(b.TempDir()), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			fill(b, s, 0, b.N, callers)
		})
	}
}

// fill stores the answers to the keys from first on.
func fill(b *testing.B, s *Store, first, n, callers int) {
	var next atomic.Int64
	next.Store(int64(first))
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(first+n) {
					return
				}
				q := Question{benchScope, benchKey(int(i))}
				if _, err := s.Intent(context.Background(), q, Send{Run: "bench", At: benchAnswer.Received}); err != nil {
					b.Error(err)
					return
				}
				if err := s.Put(context.Background(), q, benchAnswer); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "pairs/s")
	b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(n), "cpu-ns/pair")
}

// stock stores the answers to keys as Put does, many in one change.
func stock(b *testing.B, s *Store, from, to int) {
	for from < to {
		next := min(from+20_000, to)
		g := newGeneration(0)
		for i := from; i < next; i++ {
			q := Question{benchScope, benchKey(i)}
			g.addAnswer(&Item{Hash: q.Hash(), Question: q, Answer: benchAnswer})
		}
		g.end = s.manifest.Log.position()
		if err := s.seal(b.Context(), g, true); err != nil {
			b.Fatal(err)
		}
		s.merge()
		from = next
	}
}

func benchKey(i int) string { return "network.example/in/person-" + strconv.Itoa(i) }

// BenchmarkLookup finds stored keys in the order in which they were bought, as
// a second run of a list does, and in any other. LEADETL_STORED is how many
// there are (default 100,000); LEADETL_STORED_DIR is a folder to make and keep
// them in.
func BenchmarkLookup(b *testing.B) {
	stored := 100_000
	if n, err := strconv.Atoi(os.Getenv("LEADETL_STORED")); err == nil {
		stored = n
	}
	dir := os.Getenv("LEADETL_STORED_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	s, err := Open(b.Context(), InFolder(dir), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	have := int(rowsOf(s.manifest.Files))
	if have < stored {
		stock(b, s, have, stored)
	}
	any := rand.New(rand.NewPCG(1, 2)).Perm(stored)
	for _, c := range []struct {
		name   string
		bodies bool
		key    func(i int) int
	}{
		{"as bought, without bodies", false, func(i int) int { return i }},
		{"as bought", true, func(i int) int { return i }},
		{"any order, without bodies", false, func(i int) int { return any[i] }},
		{"any order", true, func(i int) int { return any[i] }},
	} {
		b.Run(c.name, func(b *testing.B) {
			const each = 4096
			var next atomic.Int64
			b.ReportAllocs()
			before := processorTime()
			b.SetParallelism(1)
			b.RunParallel(func(p *testing.PB) {
				keys := make([]string, 0, each)
				var found []Found
				for p.Next() {
					at := int(next.Add(each)-each) % max(stored-each, 1)
					keys = keys[:0]
					for i := range each {
						keys = append(keys, benchKey(c.key(at+i)))
					}
					var err error
					if found, err = s.Lookup(context.Background(), benchScope, keys, Freshness{}, c.bodies, found[:0]); err != nil || !found[each-1].Stored {
						b.Error(err, found[each-1].Stored)
						return
					}
				}
			})
			rows := float64(b.N) * each
			b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64((processorTime()-before).Nanoseconds())/rows, "cpu-ns/row")
			b.ReportMetric(float64(peakMemory())/1e6, "MB-peak")
		})
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is the most the process has had in memory, in bytes.
func peakMemory() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Maxrss * 1024
}
