package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/sinks"
)

// landList has rows of three lands and of none, in two parts of four.
const landList = "id,email,land\n1,a@x.example,US\n2,b@x.example,a/b\n3,c@x.example,\n4,invalid,US\n5,e@x.example,US\n6,f@x.example,US\n"

// byLand makes the dataset of landList, of which the people on suppress are no
// part.
func byLand(t *testing.T, suppress string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	in, list, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "suppress.csv"), filepath.Join(dir, "out")
	for name, text := range map[string]string{in: landList, list: suppress} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	clitest.RunRaw(t, slices.Concat([]string{"run", "email_to_hem", "--in", in, "--out", out, "--partition-by", "LAND", "--suppress", list,
		"--set", "rows_per_part=4", "--state", filepath.Join(dir, "state"), "--quiet"}, flags)...)
	return out
}

// TestVerifyPartedRows: rows that are parted by a column are proved as others
// are, and so is where they lie.
func TestVerifyPartedRows(t *testing.T) {
	whole := byLand(t, "email\ne@x.example\n")
	clitest.RequireWhole(t, whole)
	none := "land=" + sinks.DefaultPartition
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, out string)
		want   string
	}{
		{"a stranger", func(t *testing.T, out string) {
			rewriteAs(t, filepath.Join(out, "land=US/part-00000.parquet"), filepath.Join(out, "land=US/part-00009.parquet"))
		}, "land=US/part-00009.parquet: unexpected file"},
		{"a folder of strangers", func(t *testing.T, out string) {
			rewriteAs(t, filepath.Join(out, "land=US/part-00000.parquet"), filepath.Join(out, "land=FR/part-00000.parquet"))
		}, "land=FR/part-00000.parquet: unexpected file"},
		{"another value", func(t *testing.T, out string) {
			if err := os.Rename(filepath.Join(out, "land=a%2Fb"), filepath.Join(out, "land=FR")); err != nil {
				t.Fatal(err)
			}
		}, "land=a%2Fb/part-00000.parquet: it is missing"},
		{"a file forgotten", func(t *testing.T, out string) {
			editManifest(t, out, func(m *sinks.Manifest) { m.Parts[0].Files = m.Parts[0].Files[1:] })
		}, "its files have"},
		{"a file twice", func(t *testing.T, out string) {
			editManifest(t, out, func(m *sinks.Manifest) { m.Parts[0].Files[1] = m.Parts[0].Files[0] })
		}, "not sorted by name, or one is listed twice"},
		{"a file of another part", func(t *testing.T, out string) {
			editManifest(t, out, func(m *sinks.Manifest) { m.Parts[0].Files[0].Name = "land=US/part-00001.parquet" })
		}, "a file of part 1 of the manifest should be called land=US/part-00000.parquet"},
		{"not a folder of a partition", func(t *testing.T, out string) {
			editManifest(t, out, func(m *sinks.Manifest) { m.Parts[0].Files[0].Name = "land=a:b/part-00000.parquet" })
		}, "a file of part 1 of the manifest is not in a folder of a value of land"},
		{"no column", func(t *testing.T, out string) {
			editManifest(t, out, func(m *sinks.Manifest) { m.PartitionBy = "" })
		}, "files by value in a dataset that is not partitioned by a column"},
		{"another column", func(t *testing.T, out string) {
			editManifest(t, out, func(m *sinks.Manifest) { m.PartitionBy = "ID" })
		}, "a partition has this name too"},
		{"a suppressed row in the folder of a value", func(t *testing.T, out string) {
			from, to := none+"/part-00001.parquet", "land=FR/part-00001.parquet"
			rewriteAs(t, filepath.Join(out, from), filepath.Join(out, to))
			if err := os.Remove(filepath.Join(out, from)); err != nil {
				t.Fatal(err)
			}
			editManifest(t, out, func(m *sinks.Manifest) {
				files := m.Parts[1].Files
				i := slices.IndexFunc(files, func(f sinks.File) bool { return f.Name == from })
				files[i].Name = to
				slices.SortFunc(files, func(a, b sinks.File) int { return strings.Compare(a.Name, b.Name) })
			})
		}, "land=FR/part-00001.parquet, row group 1, column outcome, row 1: a suppressed row is in the folder of a value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			if err := os.CopyFS(out, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			c.damage(t, out)
			if found := clitest.Failures(t, out); !slices.ContainsFunc(found, func(line string) bool { return strings.Contains(line, c.want) }) {
				t.Errorf("%q is not found, but\n%s", c.want, strings.Join(found, "\n"))
			}
		})
	}
}

// rewriteAs copies a file.
func rewriteAs(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSchemaOfPartedRows: the statements have the column that the files have
// not, by the flags as by the dataset.
func TestSchemaOfPartedRows(t *testing.T) {
	out := byLand(t, "email\nnobody@x.example\n")
	byFlags := clitest.RunRaw(t, "schema", "email_to_hem", "--select", "id,email,land,answers", "--partition-by", "land", "--dialect", "athena", "--location", "s3://lake/hems")
	byDataset := clitest.RunRaw(t, "schema", "--dataset", out, "--dialect", "athena", "--location", "s3://lake/hems")
	if byFlags != byDataset || !strings.Contains(byFlags, "PARTITIONED BY (`land` string)") {
		t.Errorf("by the flags\n%s\nby the dataset\n%s", byFlags, byDataset)
	}
	manifest := clitest.RunRaw(t, "schema", "--dataset", out, "--redshift-manifest", "--location", "s3://lake/hems")
	for _, name := range []string{"land=US/part-00000.parquet", "land=US/part-00001.parquet", "land=a%2Fb/part-00000.parquet"} {
		if !strings.Contains(manifest, "s3://lake/hems/"+name) {
			t.Errorf("the manifest for Redshift lacks %s:\n%s", name, manifest)
		}
	}
}

// TestPartitionColumnMistakes: what cannot be parted is told before anything is
// read or written.
func TestPartitionColumnMistakes(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.csv")
	if err := os.WriteFile(in, []byte(landList), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ by, want string }{
		{"land,id", "--partition-by land is a column with more behind it"},
		{"land,dt=2026-11-20", "--partition-by land is a column with more behind it"},
		{"dt=2026-11-20,country", `cannot partition rows by "country": it is not among the kept input columns`},
		{"email", "it identifies them"},
		{" ", "write NAME=VALUE"},
	} {
		for _, command := range []string{"run", "plan"} {
			var errOut bytes.Buffer
			code := program.Execute(t.Context(), []string{command, "email_to_hem", "--in", in, "--out", filepath.Join(dir, "out"), "--state", filepath.Join(dir, "state"), "--partition-by", c.by}, nil, io.Discard, &errOut)
			if code != cli.ExitUsage || !strings.Contains(errOut.String(), c.want) {
				t.Errorf("%s --partition-by %s: exit code %d\n%s", command, c.by, code, &errOut)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); !os.IsNotExist(err) {
		t.Errorf("something is there: %v", err)
	}
}
