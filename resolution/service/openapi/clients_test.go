package openapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution/service/openapi"
)

// everyCall is what the programs under testdata/clients print.
var everyCall = []string{
	"account_balance", "account_resolutions", "account_usage", "deanonymization", "email_to_hem", "enrichment", "ip_to_company",
	"keyword_to_lead", "keyword_to_lead_count", "keyword_to_lead_count_result", "keyword_to_lead_result", "network_to_hem", "network_to_phone",
}

// client is a copy of a program under testdata/clients, and a service for it.
type client struct {
	*testing.T
	folder string
	served *served
}

func newClient(t *testing.T, language, tool string) *client {
	t.Helper()
	if testing.Short() {
		t.Skip("generates a client with tools from elsewhere")
	}
	if _, err := exec.LookPath(tool); err != nil {
		t.Skip(tool + " is not on PATH")
	}
	c := &client{T: t, folder: t.TempDir(), served: serve(t)}
	if err := os.CopyFS(c.folder, os.DirFS(filepath.Join("testdata", "clients", language))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.folder, "openapi.json"), openapi.Document(), 0o644); err != nil {
		t.Fatal(err)
	}
	return c
}

// try runs a command in the client's folder.
func (c *client) try(command ...string) (string, error) {
	run := exec.CommandContext(c.Context(), command[0], command[1:]...)
	run.Dir = c.folder
	run.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "BASE_URL="+c.served.url, "API_KEY="+c.served.key, "RECEIVER="+c.served.receiver)
	said, err := run.CombinedOutput()
	return string(said), err
}

func (c *client) run(command ...string) string {
	c.Helper()
	said, err := c.try(command...)
	if err != nil {
		c.Fatalf("%v: %v\n%s", command, err, said)
	}
	return said
}

// fetch gets the tools, and skips the test where there is no way to them.
func (c *client) fetch(command ...string) {
	c.Helper()
	if said, err := c.try(command...); err != nil {
		c.Skipf("%v: %v\n%s", command, err, said)
	}
}

// called fails unless all operations were called.
func (c *client) called(said string) {
	c.Helper()
	got := strings.Fields(said)
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, everyCall) {
		c.Errorf("called %v, want %v", got, everyCall)
	}
}

// TestGeneratedGo calls every operation with the client that oapi-codegen makes of
// the document.
func TestGeneratedGo(t *testing.T) {
	c := newClient(t, "go", "go")
	c.fetch("go", "mod", "download")
	if err := os.Mkdir(filepath.Join(c.folder, "api"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.run("go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", "api/api.go", "openapi.json")
	c.called(c.run("go", "run", "."))
}

// TestGeneratedTypeScript does the same with openapi-typescript, in strict mode.
func TestGeneratedTypeScript(t *testing.T) {
	c := newClient(t, "typescript", "npm")
	c.fetch("npm", "ci", "--silent", "--no-audit", "--no-fund")
	c.run("npx", "openapi-typescript", "openapi.json", "-o", "api.d.ts")
	c.run("npx", "tsc")
	c.called(c.run("node", "out/main.js"))
}
