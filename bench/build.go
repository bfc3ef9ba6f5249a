package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// build builds the programs that the steps compare. leadetl is built as in a release,
// without cgo; DuckDB needs cgo.
func (b *bench) build(ctx context.Context) error {
	for _, p := range []struct {
		name, folder, source, cgo string
		steps                     []string // that need it; nil is all
	}{
		{"leadetl", "..", "./cmd/leadetl", "CGO_ENABLED=0", nil},
		{"duckdb", ".", "./duckdb", "CGO_ENABLED=1", []string{"emails", "lookups", "first-data"}},
		{"floor", ".", "./floor", "CGO_ENABLED=0", []string{"emails", "lookups"}},
		{"bare", ".", "./bare", "CGO_ENABLED=0", []string{"service"}},
		{"fixed", ".", "./fixed", "CGO_ENABLED=0", []string{"remote", "scale"}},
		{"plainloop", ".", "./plainloop", "CGO_ENABLED=0", []string{"remote"}},
	} {
		if p.steps != nil && !slices.ContainsFunc(p.steps, b.does) {
			continue
		}
		c := exec.CommandContext(ctx, "go", "build", "-o", b.path(p.name), p.source)
		c.Dir = p.folder
		c.Env = append(os.Environ(), p.cgo)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", p.source, err, out)
		}
		if p.name == "duckdb" {
			version, err := measure(ctx, nil, b.path("duckdb"), "version")
			if err != nil {
				return err
			}
			b.report.peer = ", DuckDB " + strings.TrimSpace(version.output)
		}
	}
	return nil
}
