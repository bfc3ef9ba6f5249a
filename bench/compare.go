package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// comparison is the same work done by us and by another.
type comparison struct {
	what, columns, against string
	rows                   int
	target                 float64 // 0 without one
	ofCPU                  bool    // the target is of processor time
	ours, theirs           []usage
	files                  [2]int64 // bytes of both; 0 if not compared
	matches                int      // of both
	floor                  time.Duration
}

// mostFiles is how large our files may be, against DuckDB's.
const mostFiles = 1.05

var comparisonHead = []string{"what", "rows", "columns", "against", "target", "", "wall", "CPU", "files", "floor", "leadetl", "the other", "matched"}

func (c comparison) row() []string {
	mine, peer := series{runs: c.ours}, series{runs: c.theirs}
	wall, cpu := peer.wall().Seconds()/mine.wall().Seconds(), peer.cpu().Seconds()/mine.cpu().Seconds()
	reached, target, verdict, files, matches := wall, "", "", "", ""
	if c.matches > 0 {
		matches = grouped(c.matches)
	}
	if c.files[0] > 0 {
		files = times(float64(c.files[1]) / float64(c.files[0]))
		if float64(c.files[0]) > mostFiles*float64(c.files[1]) {
			files += " MISS"
		}
	}
	if c.target > 0 {
		target = fmt.Sprintf("≥ %.2f", c.target)
		if c.ofCPU {
			reached, target = cpu, target+" CPU"
		}
		verdict = verdictOf(reached >= c.target)
	}
	floor := ""
	if c.floor > 0 {
		floor = fmt.Sprintf("%d ns a row, %.0f%%", c.floor.Nanoseconds(), 100*float64(c.floor)*float64(c.rows)/float64(mine.wall()))
	}
	return []string{c.what, millions(c.rows), c.columns, c.against, target, verdict, times(wall), times(cpu), files, floor,
		mine.used(c.files[0]), peer.used(c.files[1]), matches}
}

func times(ratio float64) string { return fmt.Sprintf("%.2f×", ratio) }

// used is seconds, processor seconds, peak memory that is not of files, and size of the files.
func (s series) used(files int64) string {
	text := fmt.Sprintf("%.2f s, %.2f CPU, %s", s.wall().Seconds(), s.cpu().Seconds(), megabytes(s.own()))
	if files > 0 {
		text += ", files " + megabytes(files)
	}
	return text
}

// inTurns measures runs, one after another, as often as the rounds.
func (b *bench) inTurns(rounds int, runs ...func() (usage, error)) ([][]usage, error) {
	used := make([][]usage, len(runs))
	for range rounds {
		for i, run := range runs {
			u, err := run()
			if err != nil {
				return nil, err
			}
			used[i] = append(used[i], u)
		}
	}
	return used, nil
}

// newDataset runs leadetl after it has removed what an earlier run wrote.
func (b *bench) newDataset(ctx context.Context, out string, args []string) (usage, error) {
	if err := os.RemoveAll(out); err != nil {
		return usage{}, err
	}
	return b.leadetl(ctx, args...)
}

// sameRows returns the number of matches. It fails without any, if rows of either are not in the order of the list, and
// if the columns that DuckDB wrote have other values in our files.
func (b *bench) sameRows(ctx context.Context, ours, theirs string) (matches int, err error) {
	var sums [2][]string
	for i, glob := range []string{ours, theirs} {
		u, err := measure(ctx, nil, b.path("duckdb"), "sum", theirs, glob)
		if err != nil {
			return 0, err
		}
		sums[i] = strings.Fields(u.output)
	}
	for i, whose := range []string{"leadetl", "DuckDB"} {
		if sum := sums[i]; len(sum) < 2 || sum[0] == "0" || sum[1] != "true" {
			return 0, fmt.Errorf("%s wrote %.2q: matches, and whether the rows are in the order of the list", whose, sum)
		}
	}
	var differ []string
	for i, sum := range sums[0][2:] {
		if sum != sums[1][2+i] {
			name, _, _ := strings.Cut(sum, "=")
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		return 0, fmt.Errorf("%s matches, and DuckDB has %s; these columns differ: %v", sums[0][0], sums[1][0], differ)
	}
	return strconv.Atoi(sums[0][0])
}

// fileSizes returns the bytes of the Parquet files in a folder, and of the file that DuckDB
// makes of the same rows with the same codec.
func (b *bench) fileSizes(ctx context.Context, folder string) (sizes [2]int64, err error) {
	again := b.path("again.parquet")
	defer os.Remove(again)
	if _, err := measure(ctx, nil, b.path("duckdb"), "rewrite", folder+"/*.parquet", again); err != nil {
		return sizes, err
	}
	parts, err := filepath.Glob(folder + "/*.parquet")
	if err != nil {
		return sizes, err
	}
	for _, name := range append(parts, again) {
		info, err := os.Stat(name)
		if err != nil {
			return sizes, err
		}
		if name == again {
			sizes[1] = info.Size()
		} else {
			sizes[0] += info.Size()
		}
	}
	return sizes, nil
}
