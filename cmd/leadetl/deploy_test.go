package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
)

// The job of the Kubernetes manifest is one this program takes, and what the
// manifest says of exit codes is what they mean.
func TestDeployedJob(t *testing.T) {
	text, err := os.ReadFile(moduleRoot + "/deploy/cronjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Data map[string]string }
	var cron struct {
		Spec struct {
			JobTemplate struct {
				Spec struct {
					PodFailurePolicy struct {
						Rules []struct {
							OnExitCodes struct{ Values []int } `yaml:"onExitCodes"`
						}
					} `yaml:"podFailurePolicy"`
					Template struct {
						Spec struct {
							Containers []struct{ Args []string }
						}
					}
				}
			} `yaml:"jobTemplate"`
		}
	}
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != 3 {
		t.Fatalf("%d documents", len(documents))
	}
	for i, into := range map[int]any{0: &config, 2: &cron} {
		if err := yaml.Unmarshal([]byte(documents[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	job := cron.Spec.JobTemplate.Spec
	args := job.Template.Spec.Containers[0].Args
	if len(args) != 3 || args[0] != "run" || args[1] != "--job" {
		t.Fatalf("args %q", args)
	}
	name := filepath.Base(args[2])
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(config.Data[name]), 0o644); err != nil {
		t.Fatal(err)
	}
	var f runFlags
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(flags)
	f.job = path
	operation, err := f.settle(flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.config(operation); err != nil {
		t.Error(err)
	}
	if got := job.PodFailurePolicy.Rules[0].OnExitCodes.Values; !slices.Equal(got, []int{cli.ExitUsage, cli.ExitRejects, cli.ExitBudget}) {
		t.Errorf("exit codes that end the job: %v", got)
	}
}

// The policies that docs/s3.md shows are JSON.
func TestShownPolicies(t *testing.T) {
	page, err := os.ReadFile(moduleRoot + "/docs/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```json\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of JSON", len(blocks))
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if !json.Valid([]byte(text)) {
			t.Errorf("no JSON:\n%s", text)
		}
	}
}
