package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	s3Objects = 8
	// s3RowBytes is about the size of a row of writeEmails.
	s3RowBytes = 45
	s3Bytes    = 1_200_000_000
	s3Parts    = 1000 // of the dataset that is restarted
)

// s3Environ are the credentials of the server.
var s3Environ = []string{
	"AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench-secret", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
	"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
}

// s3 measures a run from S3 to S3, with the server on the same machine, against
// the same job from disk to disk. It also measures the restart of a finished
// dataset of many parts.
func (b *bench) s3(ctx context.Context) error {
	rows := max(10_000, int(s3Bytes/s3RowBytes*float64(b.rows)/fullSize))
	buckets := b.path("s3")
	lists := filepath.Join(buckets, "bench", "lists")
	if err := os.MkdirAll(lists, 0o755); err != nil {
		return err
	}
	for i := range s3Objects {
		if err := writeEmails(filepath.Join(lists, fmt.Sprintf("%d.csv", i)), rows/s3Objects); err != nil {
			return err
		}
	}
	stop, endpoint, err := b.startStore(ctx, buckets)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }() // the server's files are deleted too
	onS3 := func(in, out string, rowsPerPart int) []string {
		return []string{"run", "email_to_hem", "--in", in, "--out", out, "--quiet", "--set", "rows_per_part=" + fmt.Sprint(rowsPerPart),
			"--set", "s3_endpoint=" + endpoint, "--set", "s3_path_style=true"}
	}
	perPart := max(1, rows/27) // the same number of parts at every size
	var local, remote []usage
	for range b.rounds {
		u, err := b.leadetl(ctx, "run", "email_to_hem", "--in", filepath.Join(lists, "*.csv"), "--out", b.path("s3-local"), "--quiet", "--set", "rows_per_part="+fmt.Sprint(perPart))
		if err != nil {
			return err
		}
		local = append(local, u)
		if u, err = measure(ctx, append(s3Environ, "XDG_STATE_HOME="+b.path("state")), b.path("leadetl"), onS3("s3://bench/lists/", "s3://bench/out/", perPart)...); err != nil {
			return err
		}
		remote = append(remote, u)
		if err := errors.Join(os.RemoveAll(b.path("s3-local")), os.RemoveAll(filepath.Join(buckets, "bench", "out"))); err != nil {
			return err
		}
	}
	few := max(1, rows/s3Objects/s3Parts)
	many := onS3("s3://bench/lists/0.csv", "s3://bench/many/", few)
	var restart usage
	for range 2 { // the second run finds the dataset finished
		if restart, err = measure(ctx, append(s3Environ, "XDG_STATE_HOME="+b.path("state")), b.path("leadetl"), many...); err != nil {
			return err
		}
	}
	parts, err := filepath.Glob(filepath.Join(buckets, "bench", "many", "part-*"))
	if err != nil {
		return err
	}
	l, r := fastest(local), fastest(remote)
	t := &b.report
	t.below(fmt.Sprintf("S3 to S3, %s rows in %d objects, 2 cores shared with the server: against the same on disk", millions(rows), s3Objects), 1.3, r.wall.Seconds()/l.wall.Seconds(), "%.2f×")
	t.note("  each", fmt.Sprintf("%s, on disk %s; processor time of ours %s and %s", r.wall.Round(10*time.Millisecond), l.wall.Round(10*time.Millisecond), r.cpu.Round(10*time.Millisecond), l.cpu.Round(10*time.Millisecond)))
	t.note("  peak memory, on S3 and on disk", megabytes(r.peakRSS)+", "+megabytes(l.peakRSS))
	t.below(fmt.Sprintf("  restart of a finished dataset of %s parts on S3", grouped(len(parts))), 5, restart.wall.Seconds(), "%.2f s")
	return nil
}

func fastest(all []usage) usage {
	best := all[0]
	for _, u := range all[1:] {
		if u.wall < best.wall {
			best = u
		}
	}
	return best
}

// startStore starts the S3 server on a folder of buckets.
func (b *bench) startStore(ctx context.Context, buckets string) (stop func() error, endpoint string, err error) {
	program, err := exec.CommandContext(ctx, "go", "-C", "../internal/testkit/testservers/versitygw", "tool", "-n", "versitygw").Output()
	if err != nil {
		return nil, "", fmt.Errorf("versitygw cannot be built: %w", err)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	c := exec.CommandContext(ctx, strings.TrimSpace(string(program)), "--port", address, "--region", "us-east-1", "--quiet", "posix", buckets)
	c.Env = append(os.Environ(), "ROOT_ACCESS_KEY=bench", "ROOT_SECRET_KEY=bench-secret")
	if err := c.Start(); err != nil {
		return nil, "", err
	}
	stop = func() error { return errors.Join(c.Process.Signal(syscall.SIGTERM), c.Wait()) }
	if err := listening(ctx, address); err != nil {
		return nil, "", errors.Join(err, stop())
	}
	return stop, "http://" + address, nil
}
