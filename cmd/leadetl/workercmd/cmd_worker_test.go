package workercmd

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// TestDeployedWorkers: the workers of the Kubernetes manifest are ones this
// program takes.
func TestDeployedWorkers(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/workers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	callers := 0
	for _, document := range strings.Split(string(text), "\n---\n") {
		var deployed struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Args []string }
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &deployed); err != nil {
			t.Fatal(err)
		}
		args := deployed.Spec.Template.Spec.Containers[0].Args
		if len(args) == 0 || args[0] != "worker" {
			t.Fatalf("args %q", args)
		}
		var f workerFlags
		c := &cobra.Command{}
		f.register(c)
		if err := c.ParseFlags(args[1:]); err != nil {
			t.Fatal(err)
		}
		if _, err := f.check(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if f.service() != "" {
			callers++
		}
	}
	if callers != 1 {
		t.Errorf("%d kinds of workers call the service", callers)
	}
}
