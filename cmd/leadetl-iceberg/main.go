// Command leadetl-iceberg publishes a finished dataset of leadetl in an Apache
// Iceberg table. It registers the existing files in one append.
//
// It is a separate program and module, because the Iceberg libraries are larger
// than leadetl and cannot be linked with leadetl's version of Arrow.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"github.com/spf13/pflag"
)

// The exit codes, which are the same as those of leadetl.
const (
	exitDone        = 0
	exitFailure     = 1
	exitUsage       = 2
	exitTryAgain    = 5
	exitInterrupted = 130
)

const usage = `Publishes a finished dataset of leadetl in a table of Apache Iceberg.

Its Parquet files are registered as they are, in one append. A dataset that is
in the table already is left as it is, so that the same command can run again.
The table, and its namespace, are created if they are missing.

Usage:
  leadetl-iceberg DATASET --catalog CATALOG --table NAMESPACE.TABLE [flags]

DATASET is a folder or an s3:// address with a file _SUCCESS. CATALOG is the
address of a REST catalog (https://catalog.example), whose credentials are in
the environment as ICEBERG_TOKEN or ICEBERG_CREDENTIAL (id:secret), or
sqlite:FILE, an SQL catalog in one file.

Flags:
%s
Exit codes:
  0  published, or published before
  1  internal failure
  2  wrong usage, dataset or table; a retry does not help
  5  catalog out of reach, or the table changed meanwhile; run it again
`

func main() {
	debug.SetTraceback("crash") // a failure of Go's runtime is not exitUsage
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as by nohup
		stops = append(stops, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), stops...)
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the values of the command line.
type options struct {
	dataset, catalog, table, warehouse string
	properties                         map[string]string
}

// usageError is an error that the user has to correct.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

func wrong(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := pflag.NewFlagSet("leadetl-iceberg", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&o.catalog, "catalog", "", "`address` of the catalog")
	flags.StringVar(&o.table, "table", "", "`name` of the table, with its namespace: leads.hems")
	flags.StringVar(&o.warehouse, "warehouse", "", "`address` where new tables have their metadata (default: the catalog decides; with sqlite: its folder)")
	flags.StringToStringVar(&o.properties, "property", nil, "`name=value` of the catalog or its store, such as s3.endpoint=https://s3.example")
	flags.Usage = func() { fmt.Fprintf(stdout, usage, flags.FlagUsages()) }
	err := flags.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitDone
	case err != nil:
		err = wrong("%v", err)
	default:
		err = o.run(ctx, flags.Args(), stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "leadetl-iceberg:", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return exitCode(ctx, err)
}

func exitCode(ctx context.Context, err error) int {
	var usage *usageError
	var network net.Error
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &usage), errors.Is(err, rest.ErrUnauthorized), errors.Is(err, rest.ErrForbidden), errors.Is(err, rest.ErrBadRequest):
		return exitUsage
	case errors.As(err, &network), errors.Is(err, table.ErrCommitFailed), errors.Is(err, rest.ErrServiceUnavailable), errors.Is(err, rest.ErrServerError), errors.Is(err, rest.ErrCommitStateUnknown):
		return exitTryAgain
	}
	return exitFailure
}

func (o options) run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return wrong("name one dataset; see leadetl-iceberg --help")
	}
	o.dataset = args[0]
	ident := strings.Split(o.table, ".")
	if o.catalog == "" || len(ident) < 2 {
		return wrong("--catalog and --table NAMESPACE.TABLE are needed; see leadetl-iceberg --help")
	}
	d, err := openDataset(ctx, o.dataset, o.properties)
	if err != nil {
		return err
	}
	c, err := openCatalog(ctx, o)
	if err != nil {
		return err
	}
	defer c.close()
	p := publisher{catalog: c.Catalog, ident: ident, dataset: d}
	snapshot, before, err := p.publish(ctx)
	if err != nil {
		return err
	}
	verb := "published"
	if before {
		verb = "was published before"
	}
	_, err = fmt.Fprintf(stdout, "%s: %s in %s, snapshot %d: files %d, rows %d\n", o.dataset, verb, o.table, snapshot, len(d.files()), d.rows())
	return err
}
