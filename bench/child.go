package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// usage is the time and memory that a process used.
type usage struct {
	wall    time.Duration
	cpu     time.Duration // user and system
	peakRSS int64         // bytes
	peakOwn int64         // of that, bytes not backed by a file; sampled, 0 if unknown
	output  string
}

// measure runs a program to its end. Everything that is measured runs in its own
// process. This process stays small, because Linux counts the parent's memory at
// the fork towards the child's peak.
func measure(ctx context.Context, env []string, program string, args ...string) (usage, error) {
	// Write the data of earlier programs to disk first, so that this one does not
	// wait for it.
	syscall.Sync()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &stdout, &stderr
	started := time.Now()
	if err := c.Start(); err != nil {
		return usage{}, err
	}
	own := make(chan int64)
	ended := make(chan struct{})
	go func() { own <- peakOwn(c.Process.Pid, ended) }()
	err := c.Wait()
	wall := time.Since(started)
	close(ended)
	memory := <-own
	if err != nil {
		return usage{}, fmt.Errorf("%s %v: %w\n%s", program, args, err, stderr.Bytes())
	}
	rusage := c.ProcessState.SysUsage().(*syscall.Rusage)
	return usage{
		wall:    wall,
		cpu:     c.ProcessState.UserTime() + c.ProcessState.SystemTime(),
		peakRSS: rusage.Maxrss * rssUnit(),
		peakOwn: memory,
		output:  stdout.String(),
	}, nil
}

// rssUnit is what Rusage counts memory in, in bytes.
func rssUnit() int64 {
	if runtime.GOOS == "darwin" {
		return 1
	}
	return 1024
}

// peakOwn samples the memory of a process that is not backed by a file, until
// ended is closed.
func peakOwn(pid int, ended <-chan struct{}) (peak int64) {
	for {
		var kB int64
		_, _ = fmt.Sscan(procField(fmt.Sprintf("/proc/%d/status", pid), "RssAnon"), &kB)
		peak = max(peak, 1024*kB)
		select {
		case <-ended:
			return peak
		case <-time.After(20 * time.Millisecond):
		}
	}
}
