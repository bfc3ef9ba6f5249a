package arch

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTree(t *testing.T) {
	packages, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(packages, func(p pkg) bool { return p.path == "cmd/leadetl" }) {
		t.Fatalf("no cmd/leadetl among the %d packages read: this is not the whole module", len(packages))
	}
	for _, p := range packages {
		for _, v := range violations(p) {
			t.Error(v)
		}
	}
}

func TestImports(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     string // part of the refusal; "" is allowed
	}{
		{"internal/readahead", "internal/rows", ""},
		{"internal/rows", "transforms/email", "not below"},
		{"transforms/email", "internal/hashlanes", ""},
		{"transforms/email", "transforms/profile", "siblings"},
		{"transforms/email", "resolution", "not below"},
		{"resolution", "transforms/email", "nothing of ours"},
		{"resolution", "internal/rows", "nothing of ours"},
		{"resolution", "resolution/directory", "nothing of ours"},
		{"resolution/directory", "resolution", ""},
		{"resolution/directory", "transforms/company", ""},
		{"resolution/directory", "internal/atomicfile", ""},
		{"resolution/directory", "sources/csvfile", "not below"},
		{"resolution/directory", "resolution/embedded", "siblings"},
		{"resolution/embedded", "resolution/directory", ""},
		{"resolution/resolutiontest", "resolution/directory", ""},
		{"resolution/client", "resolution/directory", "siblings"},
		{"resolution/embedded", "resolution/resolutiontest", "for tests"},
		{"cmd/leadetl", "internal/testkit/badservice", "for tests"},
		{"cmd/leadetl", "cmd/leadetl/clitest", "for tests"},
		{"cmd/leadetl/clitest", "internal/testkit/badservice", ""},
		{"cmd/leadetl/clitest", "cmd/leadetl/program", ""},
		{"resolution/service/openapi/openapitest", "resolution/service/openapi", ""},
		{"resolution/service/sqlite", "resolution/service", "lies in"},
		{"resolution/service/sqlite", "resolution/service/callback", "siblings"},
		{"resolution/service/callback", "resolution/service/sqlite", "siblings"},
		{"resolution/service/sqlite", "resolution/service/state", ""},
		{"resolution/service", "resolution/service/state", ""},
		{"resolution/service/admission", "resolution/service/account", ""},
		{"resolution/service/account", "resolution/service/admission", "siblings"},
		{"resolution/service/admission", "resolution/service/answering", "siblings"},
		{"resolution/service/answering", "resolution/service", "lies in"},
		{"sources", "sources/csvfile", ""},
		{"sources", "internal/rows", ""},
		{"sources/csvfile", "internal/rows", ""},
		{"sources/csvfile", "sources", "lies in"},
		{"sources/csvfile", "sources/parquetfile", "siblings"},
		{"sources", "transforms/email", "not below"},
		{"sinks", "sources", "not below"},
		{"pipeline", "pipeline/columns", ""},
		{"pipeline", "sources", ""},
		{"pipeline", "sources/csvfile", "by its head alone"},
		{"pipeline", "sinks", ""},
		{"pipeline/columns", "sinks/schema", ""},
		{"pipeline", "sinks/place", "by its head alone"},
		{"sinks/warehouse", "sinks/schema", ""},
		{"sinks/place", "sinks/parquet", "siblings"},
		{"pipeline", "transforms/phone", ""},
		{"pipeline", "resolution", ""},
		{"pipeline", "resolution/embedded", "by its head alone"},
		{"pipeline", "resolution/client", "by its head alone"},
		{"pipeline", "cmd/leadetl", "not below"},
		{"pipeline/columns", "pipeline", "lies in"},
		{"pipeline/columns", "pipeline/answers", "siblings"},
		{"pipeline/columns", "transforms/email", ""},
		{"pipeline/columns", "pipeline/outcome", ""},
		{"pipeline/outcome", "pipeline/columns", "siblings"},
		{"pipeline/parts", "pipeline/begin", ""},
		{"pipeline/begin", "pipeline/parts", "siblings"},
		{"pipeline/rows", "pipeline/parts", "siblings"},
		{"pipeline/cluster", "pipeline/begin", "siblings"},
		{"sinks", "pipeline/outcome", "not below"},
		{"cmd/leadetl", "pipeline/columns", ""},
		{"cmd/leadetl", "resolution/embedded", ""},
		{"cmd/leadetl", "resolution/service", ""},
		{"cmd/leadetl", "testdata", ""},
		{"sources", "testdata", "not below"},
		{"cmd/leadetl", "cmd/other", "siblings"},
	} {
		got := refuse(c.from, c.to)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestFolderSize(t *testing.T) {
	for _, c := range []struct {
		path  string
		files int
		want  string // part of the refusal; "" is allowed
	}{
		{"sources", maxFiles, ""},
		{"sources", maxFiles + 1, "may have 20"},
	} {
		p := pkg{path: c.path, name: c.path, doc: "Package " + c.path + " reads.", files: c.files}
		if got := strings.Join(violations(p), "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %d files: got %q, want %q", c.path, c.files, got, c.want)
		}
	}
}

// TestViolations gives whole trees with one thing wrong each.
func TestViolations(t *testing.T) {
	const email = module + "/transforms/email"
	for _, c := range []struct {
		name, file, source string
		want               string // the violation; "" for none
	}{
		{"as it should be", "sources/a.go", "// Package sources reads.\npackage sources\nimport _ \"embed\"", ""},
		{"import upwards", "sources/a.go", "// Package sources reads.\npackage sources\nimport \"" + email + "\"",
			"sources imports transforms/email: transforms is not below sources"},
		{"import upwards on another platform", "sources/a_plan9.go", "// Package sources reads.\npackage sources\nimport \"" + email + "\"",
			"sources imports transforms/email: transforms is not below sources"},
		{"import in a test", "sources/a_test.go", "package sources\nimport \"" + email + "\"", ""},
		{"init", "sinks/a.go", "// Package sinks writes.\npackage sinks\nfunc init() {}", "sinks has a func init: wire it in cmd"},
		{"method called init", "sinks/a.go", "// Package sinks writes.\npackage sinks\ntype a int\nfunc (a) init() {}", ""},
		{"imported for its effects", "cmd/x/a.go", "// Command x runs.\npackage main\nimport _ \"" + email + "\"",
			"cmd/x imports transforms/email for its effects: wire it in cmd"},
		{"no comment", "internal/a/a.go", "package a", "internal/a has no package comment that begins with \"Package a\""},
		{"comment of a command", "cmd/x/a.go", "// Package main runs.\npackage main", "cmd/x has no package comment that begins with \"Command x\""},
		{"stray folder", "util/a.go", "// Package util is a heap.\npackage util", "util is in no family that has its place"},
		{"engine outside its package", "cmd/x/a.go", "// Command x runs.\npackage main\nimport \"go.temporal.io/sdk/client\"",
			"cmd/x imports go.temporal.io/sdk/client: only pipeline/cluster does"},
		{"engine in its package", "pipeline/cluster/a.go", "// Package cluster runs.\npackage cluster\nimport \"go.temporal.io/sdk/client\"", ""},
		{"nested module", "bench/a.go", "package main", ""},
		{"test data", "sources/testdata/a.go", "not Go", ""},
	} {
		tree := fstest.MapFS{c.file: {Data: []byte(c.source)}, "bench/go.mod": {}}
		packages, err := load(tree)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, p := range packages {
			got = append(got, violations(p)...)
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
