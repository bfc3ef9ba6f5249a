package objects

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// conn is a connection that fails once nothing was sent or received for a while.
// A read waits for the answer to what is being written, so each write gives it more
// time.
type conn struct {
	net.Conn
	patience time.Duration
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.patience)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// impatient makes a dialer's connections fail after a silence.
func impatient(dial dialer, patience time.Duration) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{c, patience}, nil
	}
}

// thisMachine is the one that this process runs on.
func (c *connection) thisMachine() *Machine {
	host, _ := os.Hostname()                                                                                 // without it, no other process is taken for one of this host
	client := awshttp.NewBuildableClient().WithReadTimeout(0).WithTransportOptions(func(t *http.Transport) { // conn has one
		t.ResponseHeaderTimeout = c.patience()
		t.MaxIdleConnsPerHost = 32
		t.DialContext = impatient(t.DialContext, c.patience())
	})
	return &Machine{Host: host, Processes: processes(), HTTP: client, Random: rand.Float64}
}

// processes names the namespace of process numbers: its number, and that of the start of the
// kernel, because the first namespace has the same number on every machine. Source: namespaces(7).
func processes() string {
	if runtime.GOOS != "linux" {
		return runtime.GOOS // it has one
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	boot, failed := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || failed != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}
