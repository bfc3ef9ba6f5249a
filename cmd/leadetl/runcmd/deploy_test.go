package runcmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// The job of the Kubernetes manifest is one this program takes.
func TestDeployedJob(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/cronjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Data map[string]string }
	var cron struct {
		Spec struct {
			JobTemplate struct {
				Spec struct {
					Template struct {
						Spec struct {
							Containers     []struct{ Args []string }
							InitContainers []struct{ Command []string } `yaml:"initContainers"`
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
	if len(args) < 3 || args[0] != "run" || args[1] != "--job" {
		t.Fatalf("args %q", args)
	}
	name := filepath.Base(args[2])
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "template"), []byte(config.Data[name]), 0o644); err != nil {
		t.Fatal(err)
	}
	command := job.Template.Spec.InitContainers[0].Command
	script := strings.NewReplacer("/etc/leadetl/"+name, folder+"/template", args[2], folder+"/"+name).Replace(command[2])
	path := filepath.Join(folder, name)
	night := exec.Command(command[0], command[1], script)
	night.Env = append(os.Environ(), "JOB_NAME=leadetl-nightly-29917590")
	if out, err := night.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var f runFlags
	var c cobra.Command
	f.register(&c)
	if err := c.ParseFlags(args[1:]); err != nil {
		t.Fatal(err)
	}
	f.jobFile = path
	operation, err := f.settle(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.job(operation); err != nil {
		t.Error(err)
	}
	if want := "s3://leads/hems/dt=2026-11-19/"; strings.TrimSuffix(f.out, "/")+"/" != want {
		t.Errorf("the dataset is %s, want %s", f.out, want)
	}
}

// The Jobs of deploy/scale.yaml are steps that this program takes, of one job.
func TestDeployedSteps(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/scale.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type manifest struct {
		Data map[string]string
		Spec struct {
			Completions int
			Template    struct {
				Spec struct {
					Containers []struct{ Args []string }
				}
			}
		}
	}
	var documents []manifest
	for _, document := range strings.Split(string(text), "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, m)
	}
	if len(documents) != 4 {
		t.Fatalf("%d documents", len(documents))
	}
	t.Setenv("JOB_COMPLETION_INDEX", "19")
	for i, step := range []string{stepSurvey, stepPart, stepFinish} {
		args := documents[i+1].Spec.Template.Spec.Containers[0].Args
		if len(args) < 3 || args[0] != step || args[1] != "--job" {
			t.Fatalf("args %q", args)
		}
		name := filepath.Base(args[2])
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(documents[0].Data[name]), 0o644); err != nil {
			t.Fatal(err)
		}
		f := stepFlags{step: step, windowMiB: 1, index: -1}
		var c cobra.Command
		f.register(&c, f.shareOf("window"))
		if err := c.ParseFlags(args[1:]); err != nil {
			t.Fatal(err)
		}
		f.jobFile = path
		operation, err := f.settle(t.Context(), nil)
		if err == nil {
			_, err = f.job(operation)
		}
		if err == nil {
			err = f.checkStep()
		}
		if err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if step == stepPart && (f.index != 19 || f.of != documents[i+1].Spec.Completions) {
			t.Errorf("number %d of %d, and there are %d completions", f.index, f.of, documents[i+1].Spec.Completions)
		}
	}
}
