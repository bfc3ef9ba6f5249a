// Package cluster runs one job on many machines. Temporal hands the steps of
// the run to workers, in order, and hands them out again when a worker dies.
//
// The server sees ids, counts and names of steps. Rows, keys, answers, secrets
// and the addresses of inputs are in the state on S3 alone. So the server's
// database may be lost: the same command starts the run again from S3.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/leadetl/leadetl/internal/secret"
)

// ErrUnreachable means that the Temporal server does not answer.
var ErrUnreachable = errors.New("the Temporal server is out of reach")

// ErrRefused means that the server refuses the credentials or the namespace.
var ErrRefused = errors.New("the Temporal server refuses")

// Address is where a Temporal server listens, and the namespace to use there.
// What is empty comes from the environment.
type Address struct {
	HostPort  string
	Namespace string
}

// ParseAddress parses temporal://HOST:PORT/NAMESPACE. Without a host it is the
// one in TEMPORAL_ADDRESS, or of the profile in Temporal's configuration file.
func ParseAddress(text string) (Address, error) {
	wrong := func(why string) error {
		return fmt.Errorf("%q %s; write temporal://HOST:PORT/NAMESPACE, such as temporal://localhost:7233/default", text, why)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "temporal" || u.Opaque != "":
		return Address{}, wrong("is not the address of a Temporal server")
	case u.User != nil:
		return Address{}, errors.New("the address of a Temporal server holds no credentials; put the API key into a file or TEMPORAL_API_KEY")
	case u.RawQuery != "" || u.Fragment != "":
		return Address{}, wrong("has more than a host and a namespace")
	}
	a := Address{HostPort: u.Host, Namespace: strings.Trim(u.Path, "/")}
	if strings.Contains(a.Namespace, "/") {
		return Address{}, wrong("has more than one namespace")
	}
	if a.HostPort != "" {
		if host, port, err := net.SplitHostPort(a.HostPort); err != nil || host == "" || port == "" {
			return Address{}, wrong("has no port, which usually is 7233")
		}
	}
	return a, nil
}

// String returns the address as users write it.
func (a Address) String() string { return "temporal://" + a.HostPort + "/" + a.Namespace }

// Connection says how to reach a server.
type Connection struct {
	Address Address
	// Key is the API key; if it is empty, the environment may have one.
	Key secret.Text
	// Identity names this process on the server's pages. It must not hold the
	// name of a user.
	Identity string
	Log      *slog.Logger
}

// Dial connects to the server. Settings that c lacks come from the environment
// and the profile of Temporal's own tools: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,
// TEMPORAL_API_KEY and TEMPORAL_TLS_*.
// Source: https://docs.temporal.io/develop/environment-configuration
func Dial(ctx context.Context, c Connection) (client.Client, Address, error) {
	options, at, err := c.options()
	if err != nil {
		return nil, at, err
	}
	engine, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, at, explain(err, at)
	}
	return engine, at, nil
}

// options merges the settings of c with the environment.
func (c Connection) options() (client.Options, Address, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return client.Options{}, c.Address, fmt.Errorf("the settings of Temporal (TEMPORAL_*): %w", err)
	}
	if c.Address.HostPort != "" {
		profile.Address = c.Address.HostPort
	}
	if c.Address.Namespace != "" {
		profile.Namespace = c.Address.Namespace
	}
	if key := c.Key.Reveal(); key != "" {
		profile.APIKey = key
	}
	if profile.Address == "" {
		return client.Options{}, c.Address, errors.New("the address of the Temporal server has no host; write temporal://HOST:PORT/NAMESPACE, or set TEMPORAL_ADDRESS")
	}
	if profile.Namespace == "" {
		profile.Namespace = client.DefaultNamespace
	}
	options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, c.Address, fmt.Errorf("the settings of Temporal (TEMPORAL_*): %w", err)
	}
	options.Identity = c.Identity
	options.Logger = log.NewStructuredLogger(c.Log.WithGroup("temporal"))
	return options, Address{HostPort: profile.Address, Namespace: profile.Namespace}, nil
}

// explain says what an error of the server means for its user.
func explain(err error, at Address) error {
	_, noNamespace := errors.AsType[*serviceerror.NamespaceNotFound](err)
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case noNamespace:
		return fmt.Errorf("%w: %s has no namespace %q; create it with: temporal operator namespace create %s", ErrRefused, at.HostPort, at.Namespace, at.Namespace)
	case denied:
		return fmt.Errorf("%w the credentials for %s; check the API key or the certificate (TEMPORAL_API_KEY, TEMPORAL_TLS_*)", ErrRefused, at)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnreachable, at, err)
}
