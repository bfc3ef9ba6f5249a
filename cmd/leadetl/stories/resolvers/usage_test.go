//go:build unix

package resolvers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestWrongOrders: what is wrong with the resolvers of a job is said with its line, before any call,
// and nothing is written.
func TestWrongOrders(t *testing.T) {
	t.Parallel()
	const want = "want: [email, phone]\n"
	for _, c := range []struct {
		name, keys string // of the job file from line 5 on
		resolvers  string
		flags      []string
		says       []string
	}{
		{"an unknown setting", want, "  - acme: {key_file: ./key, max_credit: 5}", nil, []string{`job.yaml:8: unknown setting "max_credit" of resolver acme; did you mean "max_credits"?`}},
		{"a setting like no other", want, "  - acme: {key_file: ./key, colour: red}", nil, []string{`job.yaml:8: unknown setting "colour" of resolver acme; the settings are key_file, name,`}},
		{"settings without sense", want, "  - acme: {key_file: ./key, rate: fast, concurrency: 0, timeout: soon, min_match: many, else: stop, strict: maybe, max_credits: -1, max_calls: x, refresh_older_than: old, idempotent: perhaps}", nil, []string{
			`job.yaml:8: rate "fast"; write it as 100/min, or 100 keys/min`, `job.yaml:8: concurrency is 0; it must be a number of at least 1`, `job.yaml:8: timeout is soon; it must be a time such as 30s`,
			`job.yaml:8: min_match "many": write a share`, `job.yaml:8: else is "stop"; it can be next`, `job.yaml:8: strict is "maybe"`, `job.yaml:8: max_credits "-1": write a whole number`,
			`job.yaml:8: max_calls "x": write a whole number`, `job.yaml:8: refresh_older_than "old":`, `job.yaml:8: idempotent "perhaps": write true, false`,
		}},
		{"a provider twice", want, "  - acme: {key_file: ./key}\n  - acme: {key_file: ./key}", nil, []string{"job.yaml:9: resolver acme is named twice"}},
		{"two services without a name", want, "  - http://127.0.0.1:1: {key_file: ./key}\n  - http://127.0.0.1:2: {key_file: ./key}", nil, []string{"job.yaml:9: two resolvers are called service; give this one another name: with {name: …}"}},
		{"two names with one variable", want, "  - http://127.0.0.1:1: {key_file: ./key, name: a-b}\n  - http://127.0.0.1:2: {key_file: ./key, name: a_b}", nil, []string{"job.yaml:9: the keys of resolvers a-b and a_b would both be in LEADETL_KEY_A_B"}},
		{"a name of other characters", want, "  - http://127.0.0.1:1: {key_file: ./key, name: a b}", nil, []string{`job.yaml:8: name "a b" has other characters than letters`}},
		{"a provider with a name of its own", want, "  - acme: {key_file: ./key, name: mine}", nil, []string{"job.yaml:8: name is for services; a provider has the name of its entry"}},
		{"for without want", "", "  - acme: {key_file: ./key, for: [email]}", nil, []string{"resolver acme: for and accept need want"}},
		{"accept without want", "", "  - acme: {key_file: ./key, accept: {email: [a@x.example]}}", nil, []string{"resolver acme: for and accept need want"}},
		{"for of what is not wanted", want, "  - acme: {key_file: ./key, for: [emial]}", nil, []string{`resolver acme: for names "emial", which is not among want; did you mean "email"?`}},
		{"for of what an entry lacks", "want: [email, seniority]\n", "  - acme: {key_file: ./key, for: [seniority]}", nil, []string{`resolver acme: for names "seniority", which its entry does not fill; it fills company_name, email`}},
		{"want of no column", "want: [emial]\n", "  - acme: {key_file: ./key}", nil, []string{`want names "emial", which is no column that a resolver of enrichment finds; did you mean "email"?`}},
		{"want of nothing like a column", "want: [hobby]\n", "  - acme: {key_file: ./key}", nil, []string{`want names "hobby", which is no column that a resolver of enrichment finds; it is one of city, company_about,`}},
		{"want twice", "want: [email, email]\n", "  - acme: {key_file: ./key}", nil, []string{`want names "email" twice`}},
		{"want without resolvers", "want: [email]\n", "", nil, []string{"job.yaml:5: want names columns for whose sake resolvers are asked; name them under resolvers"}},
		{"accept of no helper", want, "  - acme: {key_file: ./key, accept: {email_status: [valid]}}", nil, []string{`resolver acme: accept names "email_status", which is no helper of it: every value would be refused`}},
		{"accept of a helper that a verifier lacks", want, "  - acme: {key_file: ./key}\n  - checker: {key_file: ./key, accept: {email_state: [valid]}}", nil, []string{`resolver checker: accept names "email_state", which is no helper of it: every value would be refused; did you mean "email_status"?`}},
		{"accept of neither", want, "  - acme: {key_file: ./key, accept: {job: [x]}}", nil, []string{`resolver acme: accept names "job"; it takes columns with one value, and helpers`}},
		{"accept of nothing", want, "  - acme: {key_file: ./key, accept: {email: []}}", nil, []string{"resolver acme: accept of email has no value"}},
		{"a verifier that takes all", want, "  - acme: {key_file: ./key}\n  - checker: {key_file: ./key}", nil, []string{"resolver checker: it verifies email; say with accept which results are taken"}},
		{"a verifier with a share of matches", want, "  - acme: {key_file: ./key}\n  - checker: {key_file: ./key, min_match: 10%, accept: {email_status: [valid]}}", nil, []string{"resolver checker: it verifies email: min_match is for resolvers that find values"}},
		{"nothing for a key", want + "max_credits_per_key: 0\n", "  - acme: {key_file: ./key}", nil, []string{"max_credits_per_key is 0, so nobody who costs something would be asked; write 1 or more"}},
		{"no entry", want, "  - acne: {key_file: ./key}", nil, []string{`job.yaml:8: there is no provider acne; did you mean "acme"?`}},
		{"no file of entries", want + "providers: ./none.yaml\n", "  - acme: {key_file: ./key}", nil, []string{"none.yaml does not exist; check its name"}},
		{"another identifier", want, "  - mail: {key_file: ./key}", nil, []string{"resolver mail is asked by email, which no resolver before it finds"}},
		{"reference data by its name", want, "  - embedded", nil, []string{"job.yaml:8: write directory: FOLDER for reference data"}},
		{"no reference data", want, "  - directory: ./nowhere", nil, []string{"nowhere is not a directory of reference data"}},
		{"a list of one with two", want, "  - {acme: {key_file: ./key}, mail: {key_file: ./key}}", nil, []string{"job.yaml:8: a resolver has one key with its settings"}},
		{"no list", want, "  acme: {key_file: ./key}", nil, []string{"resolvers is a list: one item for each, first to last"}},
		{"both ways", want, "  - acme: {key_file: ./key}", []string{"--resolver", "pdl"}, []string{"job.yaml:7: resolvers and --resolver are both given"}},
		{"reference data beside the list", want, "  - acme: {key_file: ./key}", []string{"--directory", "own"}, []string{"job.yaml:7: resolvers and --directory are both given; write - directory: FOLDER under resolvers"}},
		{"a flag of one resolver", want, "  - acme: {key_file: ./key}", []string{"--rate", "5/s"}, []string{"--rate is for one service, named by --resolver; others have their own settings in the job file under resolvers"}},
		{"searches by two", "", "  - http://127.0.0.1:1: {key_file: ./key}\n  - http://127.0.0.1:2: {key_file: ./key, name: other}", []string{"--set", "operation=keyword_to_lead"}, []string{"keyword_to_lead asks one service; several resolvers are for operations on single records"}},
		{"searches by a provider", "", "  - acme: {key_file: ./key}", []string{"--set", "operation=keyword_to_lead_count"}, []string{"keyword_to_lead_count asks one service; provider acme has no searches"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newOrder(t, profiles(3))
			acme := x.starts(badservice.DefaultProvider("acme"))
			checks := badservice.DefaultProvider("checker")
			checks.Checks = true
			checker := x.starts(checks)
			entries, err := os.ReadFile(x.path("providers.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			x.write("providers.yaml", string(entries)+"mail:\n  base: \"http://127.0.0.1:1\"\n  key: bearer\n  ask: {email: \"GET /p?u={email}\"}\n  answers: [{match: 200 person}]\n  fields: {email: person.email}\n")
			job := "operation: enrichment\nin: ./in.csv\nout: ./out\nnetwork_hosts: [network.example]\n" + c.keys
			if !strings.Contains(job, "providers:") {
				job += "providers: ./providers.yaml\n"
			}
			if c.resolvers != "" {
				job += "resolvers:\n" + c.resolvers + "\n"
			}
			x.write("job.yaml", job)
			said := x.executes(cli.ExitUsage, append([]string{"run", "--job", x.path("job.yaml"), "--state", x.path("state")}, c.flags...)...)
			for _, says := range c.says {
				if !strings.Contains(said, says) {
					t.Errorf("%s\ndoes not say %s", said, says)
				}
			}
			if asked := len(acme.Ledger()) + len(checker.Ledger()); asked > 0 {
				t.Errorf("%d calls", asked)
			}
			if _, err := os.Stat(x.path("out")); err == nil {
				t.Error("there is a dataset")
			}
		})
	}
}

// TestPhonesOfAmerica: plan and run warn of accept: {phone_type: [mobile]}, which refuses all numbers
// of the United States and Canada.
func TestPhonesOfAmerica(t *testing.T) {
	t.Parallel()
	for accepted, warned := range map[string]bool{"mobile": true, "mobile, fixed_line": true, "mobile, fixed_line_or_mobile": false, "fixed_line": false} {
		x := newOrder(t, profiles(3))
		x.starts(badservice.DefaultProvider("acme"))
		x.resolvers = []string{"acme: {key_file: ./key, accept: {phone_type: [" + accepted + "]}}"}
		for command, said := range map[string]string{
			"plan": x.executes(cli.ExitDone, x.args("plan")...),
			"run":  x.run(cli.ExitDone),
		} {
			if strings.Contains(said, "refuses all numbers of the United States and Canada") != warned {
				t.Errorf("%s with [%s] says\n%s", command, accepted, said)
			}
		}
	}
}

// TestUnwritten: plan and run warn of columns that are paid for, and that the dataset will not have.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	for selected, warned := range map[string]bool{"input": true, "input, email": true, "input, phone_raw, email": false, "all": false} {
		x := newOrder(t, profiles(3))
		x.starts(badservice.DefaultProvider("acme"))
		x.resolvers = []string{"acme: {key_file: ./key}"}
		x.job += "select: [" + selected + "]\n"
		for command, said := range map[string]string{
			"plan": x.executes(cli.ExitDone, x.args("plan")...),
			"run":  x.run(cli.ExitDone),
		} {
			if strings.Contains(said, "what is paid for them is not in the dataset") != warned {
				t.Errorf("%s with [%s] says\n%s", command, selected, said)
			}
		}
	}
}

// TestKeys: whatever is wrong with a key, its file is named and what to do, of a provider, of a service
// among several and of one alone. Nothing of the key is shown.
func TestKeys(t *testing.T) {
	t.Setenv("LEADETL_KEY_ACME", "")
	t.Setenv("LEADETL_KEY_LEADS", " ")
	t.Setenv("LEADETL_API_KEY", "")
	const canary = "CanaryOfTheKey"
	x := newOrder(t, profiles(3))
	acme := x.starts(badservice.DefaultProvider("acme"))
	service, url := clitest.StartService(t, badservice.DefaultOptions())
	for _, c := range []struct {
		name, file, text string // of the file "key"; "" names none
		mode             os.FileMode
		says             string // FILE is the file, WHOSE whose key it is, SETTING what names the file, VARIABLE where else it may be
	}{
		{"not named", "", "", 0, "no API key for WHOSE; put it in the environment variable VARIABLE, or name its file with SETTING"},
		{"missing", "nokey", "", 0, "the API key for WHOSE: FILE does not exist; check its name; SETTING names its file"},
		{"a folder", ".", "", 0, "the API key for WHOSE: FILE is a folder; name a file in it; SETTING names its file"},
		{"empty", "key", "", 0o600, "SETTING: FILE is empty; write the API key for WHOSE to it"},
		{"a line end alone", "key", "\n", 0o600, "SETTING: FILE is empty; write the API key for WHOSE to it"},
		{"two lines", "key", canary + "\n" + canary + "\n", 0o600, "the API key for WHOSE: FILE holds more than one line, or control characters: it must hold the secret alone; SETTING names its file"},
		{"open to others", "key", canary, 0o644, "the API key for WHOSE: FILE has mode 0644 and is open to other users: chmod 600 it"},
		{"not readable", "key", canary, 0o200, "the API key for WHOSE: FILE: permission denied; check who may use it; SETTING names its file"},
	} {
		if c.mode == 0o200 && os.Geteuid() == 0 {
			continue // root may read it
		}
		file := filepath.Join(x.folder, c.file)
		if c.file == "key" {
			x.write("key", c.text)
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
		}
		setting, flags := "", []string{"run", "enrichment", "--in", x.path("in.csv"), "--out", x.path("out"), "--state", x.path("state"), "--resolver", url}
		if c.file != "" {
			setting, flags = "key_file: "+file, append(flags, "--api-key-file", file)
		}
		says := func(whose, variable, setting string, args ...string) {
			t.Helper()
			want := strings.NewReplacer("FILE", file, "WHOSE", whose, "VARIABLE", variable, "SETTING", setting).Replace(c.says)
			for _, args := range [][]string{args, append([]string{"doctor"}, args[1:]...)} {
				if said := x.executes(cli.ExitUsage, args...); !strings.Contains(said, want) || strings.Contains(said, canary) {
					t.Errorf("%s: %s says\n%s\nwant %s", c.name, args[0], said, want)
				}
			}
		}
		x.resolvers = []string{"acme: {" + setting + "}"}
		says("resolver acme", "LEADETL_KEY_ACME", "key_file", x.args("run")...)
		x.resolvers = []string{url + ": {name: leads, " + setting + "}"}
		says("the service", "LEADETL_KEY_LEADS", "key_file", x.args("run")...)
		says("the service", "LEADETL_API_KEY", "--api-key-file", flags...)
	}
	if asked := len(acme.Ledger()) + service.Seen(); asked > 0 {
		t.Errorf("%d calls", asked)
	}
}
