//go:build unix

package serve

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/resolution/service"
)

// deployedFlags are the flags of serve in a recipe, as far as the program has them.
func deployedFlags(t *testing.T, args []string) map[string]string {
	t.Helper()
	c, rest, err := program.NewRoot(cli.Streams{}).Find(args)
	if err != nil || c.Name() != "serve" {
		t.Fatalf("%q: %v", args, err)
	}
	if err := c.ParseFlags(rest); err != nil || len(c.Flags().Args()) > 0 {
		t.Fatalf("%q: %v", args, err)
	}
	values := map[string]string{}
	for _, name := range []string{"listen", "metrics-listen", "drain-delay"} {
		values[name] = c.Flag(name).Value.String()
	}
	return values
}

// outlasts checks that a recipe waits longer for the end than a drain may take.
func outlasts(t *testing.T, seconds, delay string) {
	t.Helper()
	given, err := strconv.Atoi(seconds)
	if err != nil {
		t.Fatal(err)
	}
	d, err := time.ParseDuration(delay)
	if err != nil || d == 0 {
		t.Fatalf("drain delay %q: %v", delay, err)
	}
	if takes := d + service.DefaultOptions().Connections.DrainTimeout; time.Duration(given)*time.Second <= takes {
		t.Errorf("it is killed after %d s, and a drain may take %s", given, takes)
	}
}

// TestServeUnit: the systemd unit calls what there is.
func TestServeUnit(t *testing.T) {
	text, err := os.ReadFile(clitest.ModuleRoot + "/deploy/leadetl-serve.service")
	if err != nil {
		t.Fatal(err)
	}
	setting := func(name string) string {
		found := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("no %s", name)
		}
		return found[1]
	}
	command := strings.Fields(setting("ExecStart"))
	flags := deployedFlags(t, command[1:])
	outlasts(t, setting("TimeoutStopSec"), flags["drain-delay"])
	if setting("RestartPreventExitStatus") != strconv.Itoa(cli.ExitUsage) || setting("Restart") != "on-failure" {
		t.Error("it is restarted after a wrong flag, or not after a failure")
	}
	if state := "--state /var/lib/" + setting("StateDirectory"); !strings.Contains(setting("ExecStart"), state) {
		t.Errorf("no %s", state)
	}
	limit, err := strconv.Atoi(setting("LimitNOFILE"))
	if o := service.DefaultOptions(); err != nil || limit < o.Connections.Max+o.CallbackConcurrency+128 {
		t.Errorf("%d files may be open, %v: too few for the connections", limit, err)
	}
}

// TestServeDeployment: the Deployment's program runs with its flags, on its ports,
// and answers its probes.
func TestServeDeployment(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(clitest.ModuleRoot + "/deploy/serve.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type probe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	}
	var deployment struct {
		Kind string
		Spec struct {
			Replicas int
			Strategy struct{ Type string }
			Template struct {
				Spec struct {
					Grace      int `yaml:"terminationGracePeriodSeconds"`
					Containers []struct {
						Args  []string
						Ports []struct {
							Name string
							Port int `yaml:"containerPort"`
						}
						Startup   probe `yaml:"startupProbe"`
						Readiness probe `yaml:"readinessProbe"`
						Liveness  probe `yaml:"livenessProbe"`
					}
				}
			}
		}
	}
	documents := strings.Split(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(documents[1]), &deployment); err != nil || deployment.Kind != "Deployment" {
		t.Fatal(deployment.Kind, err)
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	flags := deployedFlags(t, container.Args)
	outlasts(t, strconv.Itoa(pod.Grace), flags["drain-delay"])
	if deployment.Spec.Replicas != 1 || deployment.Spec.Strategy.Type != "Recreate" {
		t.Error("two pods may have one state")
	}

	p := clitest.NewPlace(t)
	args := slices.Concat(container.Args[1:], []string{"--state", p.State, "--directory", p.Directory, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"})
	s := p.Start(args...)
	s.Await()
	metrics, _ := s.Said.Line("serving")["metrics"].(string)
	urls := map[string]string{}
	for _, port := range container.Ports {
		for flag, url := range map[string]string{"listen": s.Public, "metrics-listen": metrics} {
			if _, number, err := net.SplitHostPort(flags[flag]); err == nil && number == strconv.Itoa(port.Port) {
				urls[port.Name] = url
			}
		}
	}
	if len(urls) != len(container.Ports) || len(urls) != 2 {
		t.Errorf("the ports are those of %v", urls)
	}
	for _, probe := range []probe{container.Startup, container.Readiness, container.Liveness} {
		if a := clitest.NewOperator(t, urls[probe.HTTPGet.Port]).Do("GET", probe.HTTPGet.Path, ""); a.Status != http.StatusOK {
			t.Errorf("%+v: %d", probe, a.Status)
		}
	}
	checkAlerts(t, string(clitest.NewOperator(t, metrics).Do("GET", "/metrics", "").Raw))
	if container.Readiness.HTTPGet.Path != "/readyz" || container.Liveness.HTTPGet.Path != "/healthz" {
		t.Error("a full disk would restart the pod, or a drain would go unseen")
	}
	if code := s.Stop(syscall.SIGTERM); code != cli.ExitDone {
		t.Errorf("exit code %d\n%s", code, s.Said)
	}
}

// checkAlerts: every metric of the alert rules is there from the start.
func checkAlerts(t *testing.T, metrics string) {
	t.Helper()
	text, err := os.ReadFile(clitest.ModuleRoot + "/deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations struct{ Summary string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, r := range rules.Groups[0].Rules {
		for _, name := range regexp.MustCompile(`leadetl_[a-z_]+`).FindAllString(r.Expr, -1) {
			asked++
			if !regexp.MustCompile(`(?m)^` + name + `[ {]`).MatchString(metrics) {
				t.Errorf("%s asks for %s, which is not among the metrics", r.Alert, name)
			}
		}
		if r.Annotations.Summary == "" {
			t.Errorf("%s says nothing", r.Alert)
		}
	}
	if asked < 8 {
		t.Errorf("%d metrics are asked for", asked)
	}
}

// TestBackupRecipes: the timer's command and the CronJob's make a backup where they
// may write.
func TestBackupRecipes(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(clitest.ModuleRoot + "/deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	line := func(text, pattern string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("no %s", pattern)
		}
		return found[1]
	}
	unit, pods := read("leadetl-backup.service"), read("serve.yaml")
	if serve := read("leadetl-serve.service"); line(unit, `--state (\S+)`) != line(serve, `--state (\S+)`) {
		t.Error("the timer backs up another state")
	}
	if !strings.Contains(read("leadetl-backup.timer"), "OnCalendar=hourly") || line(unit, `^ReadWritePaths=(.*)$`) != line(unit, `backup (\S+)`) {
		t.Error("the unit may not write, or is never started")
	}
	p := clitest.NewPlace(t)
	p.Customer("Example Rockets", "1000")
	for _, command := range []string{line(unit, `^ExecStart=\S+ (.*)$`), strings.ReplaceAll(line(pods, `args: \[(admin, .*)\]`), ",", "")} {
		words := strings.Fields(strings.ReplaceAll(command, "--state=", "--state "))
		folder := t.TempDir()
		words[2], words[len(words)-1] = folder, p.State
		if code := program.Execute(t.Context(), words, strings.NewReader(""), io.Discard, io.Discard); code != cli.ExitDone {
			t.Errorf("%s: exit code %d", command, code)
		}
		if made, err := filepath.Glob(folder + "/service-*.sqlite"); err != nil || len(made) != 1 {
			t.Errorf("%s: made %v, %v", command, made, err)
		}
	}
}
