package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// callbackConnections is how many connections send calls with a callback
// address.
const callbackConnections = 16

// callbackOperations are the operations whose answers are posted too, and the
// member of the request with the identifier.
var callbackOperations = []struct{ name, member string }{
	{"email_to_hem", `"email":"person-' .. n .. '@mail.example"`},
	{"network_to_hem", `"network_url":"https://network.example/in/person-' .. n .. '"`},
	{"network_to_phone", `"network_url":"https://network.example/in/person-' .. n .. '"`},
}

// callbacks measures the operations with callbacks, which are delivered
// meanwhile to a server in this process. If -before names a program, it measures
// that one first.
func (b *bench) callbacks(ctx context.Context, dir string, people, seconds int) error {
	for _, operation := range callbackOperations {
		if b.before != "" {
			was, err := b.callbacksOf(ctx, b.before, dir, operation.name, operation.member, people, seconds)
			if err != nil {
				return err
			}
			b.report.note("serve: "+operation.name+" with callbacks, by the program before", was.String())
		}
		is, err := b.callbacksOf(ctx, b.path("leadetl"), dir, operation.name, operation.member, people, seconds)
		if err != nil {
			return err
		}
		r := &b.report
		r.atLeast(fmt.Sprintf("serve: %s with callbacks, %d connections", operation.name, callbackConnections), 5000, is.rate, "%.0f requests/s")
		r.below("  99th percentile", 30, is.p99.Seconds()*1000, "%.1f ms")
		r.add("  errors, and callbacks not delivered", "0", fmt.Sprint(is.failed+max(0, is.requests-is.delivered)), is.failed == 0 && is.delivered >= is.requests)
		r.note("  callbacks delivered under load, and until the last", is.deliveries())
		r.note("  processor time for each call, its callback delivered", is.each())
	}
	return nil
}

// called is the result of a load with callbacks.
type called struct {
	load
	meanwhile, delivered int           // callbacks
	under, all           time.Duration // the load, and until the last callback
}

func (c called) deliveries() string {
	return fmt.Sprintf("%.0f/s, %.0f/s", float64(c.meanwhile)/c.under.Seconds(), float64(c.delivered)/c.all.Seconds())
}

// each is the CPU time that a call cost the server.
func (c called) each() string {
	return fmt.Sprintf("%d µs", c.cpu.Microseconds()/int64(max(c.requests, 1)))
}

func (c called) String() string {
	return fmt.Sprintf("%.0f requests/s, p99 %.1f ms, %s delivered, %s each", c.rate, c.p99.Seconds()*1000, c.deliveries(), c.each())
}

// callbacksOf measures one operation of a program, on a state of its own.
func (b *bench) callbacksOf(ctx context.Context, program, dir, operation, member string, people, seconds int) (c called, err error) {
	state := b.path("callbacks")
	defer func() {
		if removed := os.RemoveAll(state); err == nil {
			err = removed
		}
	}()
	admin := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, program, append(append([]string{"admin"}, args...), "--state", state)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	if _, err := admin("org", "create", "bench", "--credits", fmt.Sprint(loadCredits)); err != nil {
		return c, err
	}
	key, err := admin("key", "create", "bench")
	if err != nil {
		return c, err
	}
	var arrived atomic.Int64
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return c, err
	}
	receiver := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived.Add(1)
		w.WriteHeader(http.StatusNoContent)
	})}
	served := make(chan error, 1)
	go func() { served <- receiver.Serve(listener) }()
	defer func() {
		_ = receiver.Close()
		<-served
	}()
	q := question{
		path:        "/lead/resolution/" + operation,
		body:        fmt.Sprintf(`{%s,"callback_url":"http://%s/hook"}`, member, listener.Addr()),
		connections: callbackConnections,
	}
	began := time.Now()
	c.load, err = b.underLoad(ctx, key, q, people, seconds, func(address string) *exec.Cmd {
		began = time.Now()
		return exec.CommandContext(ctx, program, "serve", "--directory", dir, "--state", state, "--listen", address, "--internal-listen", "none",
			"--callback-allow", "127.0.0.0/8", "--limit-single", "0", "--limit-kept", "0", "--log-level", "error")
	}, func(string, load) error {
		c.under, c.meanwhile = time.Since(began), int(arrived.Load())
		return nil
	}, func(_ string, l load) error {
		for wait := time.Now().Add(10 * time.Minute); int(arrived.Load()) < l.requests && time.Now().Before(wait); {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c.all, c.delivered = time.Since(began), int(arrived.Load())
		return nil
	})
	return c, err
}
