package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// usage is the time and memory that a process used.
type usage struct {
	wall    time.Duration
	cpu     time.Duration // user and system
	peakRSS int64         // bytes
	output  string
}

// measure runs a program to its end. Everything measured runs in a process of
// its own. This process stays small, because Linux counts the memory of the
// parent at the fork as the child's peak.
func measure(ctx context.Context, env []string, program string, args ...string) (usage, error) {
	// Write the data of earlier programs to disk first, so that this one does not
	// wait for it.
	syscall.Sync()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &stdout, &stderr
	started := time.Now()
	err := c.Run()
	wall := time.Since(started)
	if err != nil {
		return usage{}, fmt.Errorf("%s %v: %w\n%s", program, args, err, stderr.Bytes())
	}
	rusage := c.ProcessState.SysUsage().(*syscall.Rusage)
	return usage{
		wall:    wall,
		cpu:     c.ProcessState.UserTime() + c.ProcessState.SystemTime(),
		peakRSS: rusage.Maxrss * rssUnit,
		output:  stdout.String(),
	}, nil
}
