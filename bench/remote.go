package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// The conditions of the remote targets.
const (
	remoteLatency     = 50 * time.Millisecond
	remoteInFlight    = 256
	unlimitedInFlight = 256
	remoteLimit       = 200 // calls a second
)

// remote measures runs against a service on the same machine. The runs keep
// every answer on disk; the plain loop they are compared with keeps none.
func (b *bench) remote(ctx context.Context) error {
	scale := float64(b.rows) / fullSize
	for _, step := range []func(context.Context, float64) error{b.remoteWithLatency, b.remoteUnlimited, b.remoteLimited} {
		if err := step(ctx, scale); err != nil {
			return err
		}
	}
	return nil
}

// remoteWithLatency measures how much of concurrency ÷ latency a run reaches. The target is for two minutes, so that
// start and end of the run matter little.
func (b *bench) remoteWithLatency(ctx context.Context, scale float64) error {
	rows := max(10_000, int(600_000*scale))
	list, err := b.addressList(rows)
	if err != nil {
		return err
	}
	var ours, plain usage
	err = b.against(ctx, []string{"-latency", remoteLatency.String()}, func(address string) (err error) {
		if plain, err = measure(ctx, nil, b.path("plainloop"), "-concurrency", fmt.Sprint(remoteInFlight), "http://"+address, list, b.path("plain.csv")); err != nil {
			return err
		}
		ours, err = b.ask(ctx, address, list, "latency", "--concurrency", fmt.Sprint(remoteInFlight))
		return err
	})
	if err != nil {
		return err
	}
	most := remoteInFlight / remoteLatency.Seconds()
	r := &b.report
	what, share := fmt.Sprintf("remote, %s latency, %d in flight: share of %.0f calls/s", remoteLatency, remoteInFlight, most), perSecond(rows, ours)/most
	if b.full {
		r.atLeast(what, 0.95, share, "%.3f")
	} else {
		r.note(what+", of "+millions(rows)+" rows", fmt.Sprintf("%.3f", share))
	}
	r.note("  the plain loop, nothing durable", fmt.Sprintf("%.3f", perSecond(rows, plain)/most))
	return nil
}

// remoteUnlimited measures calls without latency or limit. Then it runs the same
// list again, with every answer stored.
func (b *bench) remoteUnlimited(ctx context.Context, scale float64) error {
	rows := max(10_000, int(1_000_000*scale))
	list, err := b.addressList(rows)
	if err != nil {
		return err
	}
	var ours, plain, few, stored, many usage
	err = b.against(ctx, nil, func(address string) (err error) {
		if plain, err = measure(ctx, nil, b.path("plainloop"), "-concurrency", fmt.Sprint(unlimitedInFlight), "http://"+address, list, b.path("plain.csv")); err != nil {
			return err
		}
		if ours, err = b.ask(ctx, address, list, "unlimited", "--concurrency", fmt.Sprint(unlimitedInFlight)); err != nil {
			return err
		}
		if stored, err = b.ask(ctx, address, list, "unlimited", "--concurrency", fmt.Sprint(unlimitedInFlight)); err != nil {
			return err
		}
		short, err := b.addressList(rows / 10)
		if err != nil {
			return err
		}
		if few, err = b.ask(ctx, address, short, "few", "--concurrency", fmt.Sprint(unlimitedInFlight)); err != nil {
			return err
		}
		long, err := b.repeated(list, 10)
		if err != nil {
			return err
		}
		many, err = b.ask(ctx, address, long, "unlimited", "--concurrency", fmt.Sprint(unlimitedInFlight))
		return err
	})
	if err != nil {
		return err
	}
	r := &b.report
	r.atLeast(fmt.Sprintf("remote, no latency, %d in flight, 2 cores shared with the service", unlimitedInFlight), 10_000, perSecond(rows, ours), "%.0f calls/s")
	r.note("  against the plain loop", fmt.Sprintf("%.2f× of %.0f calls/s", perSecond(rows, ours)/perSecond(rows, plain), perSecond(rows, plain)))
	r.atLeast("remote, everything stored", 150_000, perSecond(rows, stored), "%.0f rows/s")
	r.below(fmt.Sprintf("  peak memory of %s, %s and %s rows, the largest", millions(rows/10), millions(rows), millions(10*rows)), 400,
		float64(max(few.peakRSS, ours.peakRSS, stored.peakRSS, many.peakRSS))/1e6, "%.0f MB")
	r.note("  each", fmt.Sprintf("%s, %s, %s", megabytes(few.peakRSS), megabytes(ours.peakRSS), megabytes(many.peakRSS)))
	return nil
}

// remoteLimited measures how much of a rate limit a run reaches, and how many
// calls are refused.
func (b *bench) remoteLimited(ctx context.Context, scale float64) error {
	seconds := max(5, int(60*min(1, 10*scale)))
	rows := remoteLimit * seconds
	list, err := b.addressList(rows)
	if err != nil {
		return err
	}
	var ours usage
	refused := -1
	err = b.against(ctx, []string{"-limit", fmt.Sprint(remoteLimit), "-latency", "5ms"}, func(address string) (err error) {
		if ours, err = b.ask(ctx, address, list, "limited", "--rate", fmt.Sprintf("%d/s", remoteLimit)); err != nil {
			return err
		}
		var answered int
		response, err := http.Get("http://" + address + "/seen")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = fmt.Fscan(response.Body, &answered, &refused)
		return err
	})
	if err != nil {
		return err
	}
	r := &b.report
	r.atLeast(fmt.Sprintf("remote under a limit of %d/s, %d s: share of it", remoteLimit, seconds), 0.99, perSecond(rows, ours)/remoteLimit, "%.3f")
	r.add("  refused with 429", "0", fmt.Sprint(refused), refused == 0)
	return nil
}

func perSecond(rows int, u usage) float64 { return float64(rows) / u.wall.Seconds() }

// ask runs a job against a service. Runs with the same state share stored
// answers.
func (b *bench) ask(ctx context.Context, address, list, state string, more ...string) (usage, error) {
	out := b.path("remote")
	args := append([]string{"run", "ip_to_company", "--in", list, "--out", out, "--quiet", "--resolver", "http://" + address, "--state", b.path("remote-" + state)}, more...)
	u, err := measure(ctx, []string{"LEADETL_API_KEY=bench"}, b.path("leadetl"), args...)
	return u, errors.Join(err, os.RemoveAll(out))
}

// against starts the service, calls do, and stops the service.
func (b *bench) against(ctx context.Context, flags []string, do func(address string) error) (err error) {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, b.path("fixed"), append(flags, address)...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.Process.Signal(syscall.SIGTERM))
		_ = c.Wait() // the signal ended it
		states, globErr := os.ReadDir(b.dir)
		err = errors.Join(err, globErr)
		for _, s := range states { // stored answers belong to the address of this service
			if strings.HasPrefix(s.Name(), "remote-") {
				err = errors.Join(err, os.RemoveAll(b.path(s.Name())))
			}
		}
	}()
	if err := listening(ctx, address); err != nil {
		return err
	}
	return do(address)
}

// addressList is a list of distinct addresses.
func (b *bench) addressList(rows int) (name string, err error) {
	name = b.path(fmt.Sprintf("addresses-%d.csv", rows))
	return name, writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "ip,id")
		for id := range rows {
			fmt.Fprintf(w, "%s,%d\n", ipv4(2<<24+uint32(id)), id+1)
		}
	})
}

// repeated is a list repeated the given number of times.
func (b *bench) repeated(list string, times int) (name string, err error) {
	rows, err := os.ReadFile(list)
	if err != nil {
		return "", err
	}
	name = b.path("repeated.csv")
	return name, writeFile(name, func(w *bufio.Writer) {
		header, rest, _ := strings.Cut(string(rows), "\n")
		fmt.Fprintln(w, header)
		for range times {
			_, _ = io.WriteString(w, rest) // writeFile returns the error
		}
	})
}
