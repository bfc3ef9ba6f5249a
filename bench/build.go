package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// build builds the programs to compare. leadetl is built as in a release,
// without cgo; DuckDB needs cgo.
func (b *bench) build(ctx context.Context) error {
	for _, p := range []struct{ name, folder, source, cgo string }{
		{"leadetl", "..", "./cmd/leadetl", "CGO_ENABLED=0"},
		{"duckdb", ".", "./duckdb", "CGO_ENABLED=1"},
		{"hashonly", ".", "./hashonly", "CGO_ENABLED=0"},
		{"bare", ".", "./bare", "CGO_ENABLED=0"},
		{"fixed", ".", "./fixed", "CGO_ENABLED=0"},
		{"plainloop", ".", "./plainloop", "CGO_ENABLED=0"},
	} {
		if b.only == "scale" && p.name != "leadetl" && p.name != "fixed" { // DuckDB takes minutes to link
			continue
		}
		c := exec.CommandContext(ctx, "go", "build", "-o", b.path(p.name), p.source)
		c.Dir = p.folder
		c.Env = append(os.Environ(), p.cgo)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", p.source, err, out)
		}
	}
	if b.only == "scale" {
		return nil
	}
	version, err := measure(ctx, nil, b.path("duckdb"), "version")
	b.report.peer = "DuckDB " + strings.TrimSpace(version.output)
	return err
}
