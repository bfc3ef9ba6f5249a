package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// The conditions of the targets for a state on S3.
const (
	putLatency     = 25 * time.Millisecond
	scaleLatency   = 50 * time.Millisecond // of the service
	scaleFlatOut   = 5000                  // calls a second
	scaleInFlight  = 1024
	mostPutsAt200  = 10 // a second
	mostOfOneRate  = 1.10
	leastOfOneRate = 0.99
)

// scale measures runs that keep their answers on S3, where a request that writes
// takes 25 ms longer than on this machine. The rate is that of the calls that the
// service saw, without the first and the last 2 seconds.
func (b *bench) scale(ctx context.Context) error {
	seconds := max(10, int(60*min(1, 10*float64(b.rows)/fullSize)))
	buckets := b.path("scale-buckets")
	if err := os.MkdirAll(filepath.Join(buckets, "bench"), 0o755); err != nil {
		return err
	}
	stop, endpoint, err := b.startStore(ctx, buckets)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }() // the server's files are deleted too
	slow, err := slowWrites(endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = slow.server.Close() }() // all its callers have ended
	for _, at := range []struct{ rate, inFlight int }{{200, 64}, {1000, 256}, {0, scaleInFlight}} {
		if err := b.scaleAt(ctx, slow, at.rate, at.inFlight, seconds); err != nil {
			return err
		}
	}
	return nil
}

// scaleAt measures a run at a rate; 0 is without a limit.
func (b *bench) scaleAt(ctx context.Context, slow *slowStore, rate, inFlight, seconds int) error {
	perSecond := rate
	if rate == 0 {
		perSecond = scaleFlatOut
	}
	list, err := b.addressList(perSecond * seconds)
	if err != nil {
		return err
	}
	flags := []string{"--concurrency", fmt.Sprint(inFlight), "--set", "s3_endpoint=" + slow.url, "--set", "s3_path_style=true"}
	if rate > 0 {
		flags = append(flags, "--rate", fmt.Sprintf("%d/s", rate))
	}
	var seen calls
	var puts int64
	var used usage
	err = b.against(ctx, []string{"-latency", scaleLatency.String()}, func(address string) error {
		before := slow.puts.Load()
		out := b.path("scale-out")
		args := append([]string{"run", "ip_to_company", "--in", list, "--out", out, "--quiet", "--resolver", "http://" + address, "--state", "s3://bench/state/"}, flags...)
		var err error
		if used, err = measure(ctx, append(slices.Clone(s3Environ), "LEADETL_API_KEY=bench"), b.path("leadetl"), args...); err != nil {
			return err
		}
		puts = slow.puts.Load() - before
		if seen, err = callsAt(address); err != nil {
			return err
		}
		return errors.Join(os.RemoveAll(out), os.RemoveAll(filepath.Join(b.path("scale-buckets"), "bench", "state")))
	})
	if err != nil {
		return err
	}
	b.report.scaled(rate, inFlight, seen, puts, used)
	return nil
}

// scaled adds the lines of one rate.
func (r *report) scaled(rate, inFlight int, seen calls, puts int64, used usage) {
	steady := seen.steady()
	perSecond := float64(puts) / (float64(seen.last-seen.first) / float64(time.Second))
	cost := fmt.Sprintf("%s of processor time, %s", used.cpu.Round(time.Second/10), megabytes(used.peakRSS))
	if rate == 0 {
		r.atLeast(fmt.Sprintf("state on S3, %s a write, %d in flight, no limit, 2 cores shared with service and store", putLatency, inFlight), scaleFlatOut, steady, "%.0f calls/s")
		r.note("  writes to S3, cost", fmt.Sprintf("%.1f a second; %s", perSecond, cost))
		return
	}
	share, most := steady/float64(rate), seen.most(time.Second)/float64(rate)
	r.add(fmt.Sprintf("state on S3, %s a write, %d calls/s, %d in flight: share of the rate", putLatency, rate, inFlight), "0.990–1.005", fmt.Sprintf("%.4f", share),
		share >= leastOfOneRate && share <= 1.005)
	r.add("  in any second", fmt.Sprintf("≤ %.2f", mostOfOneRate), fmt.Sprintf("%.3f", most), most <= mostOfOneRate)
	if rate == 200 {
		r.add("  writes to S3", fmt.Sprintf("≤ %d/s", mostPutsAt200), fmt.Sprintf("%.1f/s", perSecond), perSecond <= mostPutsAt200)
	} else {
		r.note("  writes to S3", fmt.Sprintf("%.1f/s", perSecond))
	}
	r.note("  cost", cost)
}

// slowStore is a store whose writes take longer.
type slowStore struct {
	url    string
	server *http.Server
	puts   atomic.Int64
}

// slowWrites puts a proxy before a store, which delays what writes.
func slowWrites(endpoint string) (*slowStore, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	s := &slowStore{}
	forward := &httputil.ReverseProxy{
		// The host of the request stays, because it is part of its signature.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut || r.Method == http.MethodPost {
			s.puts.Add(1)
			time.Sleep(putLatency)
		}
		forward.ServeHTTP(w, r)
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.url = "http://" + listener.Addr().String()
	go func() { _ = s.server.Serve(listener) }() // until Close
	return s, nil
}

// calls are when a service was called, since its start.
type calls struct {
	at          []time.Duration // in order
	first, last time.Duration
}

// steady is the calls a second without the first and the last 2 seconds.
func (c calls) steady() float64 {
	const edge = 2 * time.Second
	n := 0
	for _, at := range c.at {
		if at >= c.first+edge && at < c.last-edge {
			n++
		}
	}
	return float64(n) / (c.last - c.first - 2*edge).Seconds()
}

// most is the largest number of calls within a window, whenever it begins.
func (c calls) most(window time.Duration) float64 {
	most, from := 0, 0
	for to, at := range c.at {
		for c.at[from] <= at-window {
			from++
		}
		most = max(most, to-from+1)
	}
	return float64(most)
}

// callsAt asks the service when it was called.
func callsAt(address string) (c calls, err error) {
	response, err := http.Get("http://" + address + "/times")
	if err != nil {
		return c, err
	}
	defer response.Body.Close()
	for {
		var ns int64
		if _, err := fmt.Fscan(response.Body, &ns); err != nil {
			break
		}
		c.at = append(c.at, time.Duration(ns))
	}
	if len(c.at) == 0 {
		return c, errors.New("the service saw no call")
	}
	slices.Sort(c.at)
	c.first, c.last = c.at[0], c.at[len(c.at)-1]
	return c, nil
}
