package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
)

// reportFlags are the flags of report.
type reportFlags struct {
	out    string
	open   bool
	asJSON bool
	s3     wire.S3
}

func newReportCommand(std cli.Streams) *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report DATASET",
		Short: "Show how a dataset's last run went, as a page",
		Long: `Make the page _report.html of a dataset again from its _report.json, and print
where it is. A run writes both when it ends. If a dataset has no report, the page
shows what its _manifest.json says. The page is one file that loads nothing
else, and holds no value of any row. For a dataset on S3, give --out.

With --json, print _report.json instead.`,
		Example: `  leadetl report out/hems
  leadetl report out/hems --open
  leadetl report out/hems --out last-night.html
  leadetl report s3://leads/hems/ --out last-night.html --open
  leadetl report out/hems --json | jq .service.calls.credits`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: ""}),
		Args:        oneDataset,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], std)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&f.out, "out", "", "`file` for the page in the place of DATASET/_report.html, or - for standard output")
	c.Flags().BoolVar(&f.open, "open", false, "open the page in the browser; without one, its path is printed")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print _report.json; make no page")
	f.s3.RegisterReading(c.Flags())
	return c
}

func oneDataset(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no dataset; name its folder")
	}
	return cli.AtMost(1, args)
}

func (f *reportFlags) run(ctx context.Context, dataset string, std cli.Streams) error {
	if f.open && f.out == "-" {
		return cli.UsageError(errors.New("--open opens a file; give --out a name"))
	}
	if info, err := os.Stat(f.out); err == nil && info.IsDir() {
		return cli.UsageError(fmt.Errorf("--out: %s is a folder; name a file in it", f.out))
	}
	if f.asJSON && (f.open || f.out != "") {
		return cli.UsageError(errors.New("--json makes no page; leave out --out and --open"))
	}
	if f.asJSON {
		return f.printJSON(ctx, dataset, std)
	}
	if objects.Is(dataset) && f.out == "" {
		return cli.UsageError(fmt.Errorf("%s is on S3, where only its run writes; name a file for the page with --out", dataset))
	}
	folder, dataset, err := openNight(ctx, dataset, &f.s3, std.Log())
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	page, err := makePage(folder)
	if err != nil {
		return wire.UnlessUnavailable(fmt.Errorf("%s: %w", dataset, err))
	}
	if f.out == "-" {
		_, err := std.Out.Write(page)
		return err
	}
	path := folder.Path(sinks.ReportPageName)
	if f.out != "" {
		path = f.out
		err = atomicfile.Write(path, page)
	} else {
		err = replacePage(folder, page)
	}
	switch {
	case errors.Is(err, filelock.ErrLocked):
		return cli.UsageError(fmt.Errorf("%w; try again when the run has ended, or write the page elsewhere with --out", err))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return cli.UsageError(fmt.Errorf("--out: %w", err))
	case err != nil:
		return err
	}
	if _, err := fmt.Fprintln(std.Out, path); err != nil || !f.open {
		return err
	}
	return openInBrowser(ctx, path, std)
}

// printJSON prints the report as it is in the dataset.
func (f *reportFlags) printJSON(ctx context.Context, dataset string, std cli.Streams) error {
	folder, dataset, err := openNight(ctx, dataset, &f.s3, std.Log())
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	data, err := folder.ReadFile(sinks.ReportName)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.UsageError(fmt.Errorf("%s: there is no %s; a run that ends leaves it in the folder of its dataset, and one that was killed needs the same command again", dataset, sinks.ReportName))
	}
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	_, err = std.Out.Write(data)
	return err
}

// makePage makes the page from the report of the last run, or from the manifest
// if there is no report.
func makePage(folder *sinks.Reader) ([]byte, error) {
	for _, from := range []struct {
		name   string
		render func([]byte) ([]byte, error)
	}{{sinks.ReportName, report.Render}, {sinks.ManifestName, report.RenderManifest}} {
		data, err := folder.ReadFile(from.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		page, err := from.render(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from.name, err)
		}
		return page, nil
	}
	return nil, fmt.Errorf("there is no %s and no %s; a run that ends leaves them in the folder of its dataset, and one that was killed needs the same command again", sinks.ReportName, sinks.ManifestName)
}

// replacePage writes the page to the dataset's folder, unless it is already
// there.
func replacePage(folder *sinks.Reader, page []byte) error {
	if there, err := folder.ReadFile(sinks.ReportPageName); err == nil && bytes.Equal(there, page) {
		return nil
	}
	lock, err := filelock.Folder(folder.Dir()) // a run in progress writes its own page
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.Write(folder.Path(sinks.ReportPageName), page), lock.Release())
}

// openInBrowser opens a file in the browser. If that fails, it is not an error:
// the page exists.
func openInBrowser(ctx context.Context, path string, std cli.Streams) error {
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, opener, path)
	c.Stdout, c.Stderr = std.Err, std.Err
	if err := c.Run(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(std.Err, "leadetl: no browser could be opened (%v); the page is %s\n", err, path)
	}
	return ctx.Err()
}
