//go:build unix

package s3

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// Lists go in from S3 and datasets come out there as they do from and to the
// disk, byte for byte.
func TestS3(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	// The names of the inputs are a column, so what is compared is made from the
	// same place.
	list := clitest.EmailList(30_000)
	j.Put("lists/2026/a.csv", list)
	if err := os.WriteFile(j.Path("a.csv"), []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--set", "rows_per_part=4000", "--quiet"}
	bucket := "s3://" + clitest.S3Bucket

	j.Run(0, j.Path("a.csv"), j.Path("out"), flags...)
	j.Run(0, j.Path("a.csv"), bucket+"/from-disk", flags...)
	clitest.RequireFiles(t, "disk → S3", clitest.Files(t, j.Object("from-disk")), clitest.Files(t, j.Path("out")))

	j.Run(0, bucket+"/lists/2026/", j.Path("from-s3"), flags...)
	j.Run(0, bucket+"/lists/**.csv", bucket+"/both/", flags...)
	clitest.RequireFiles(t, "S3 → S3", clitest.Files(t, j.Object("both")), clitest.Files(t, j.Path("from-s3")))
	if len(clitest.Files(t, j.Object("both"))) != 15 { // 8 parts, 6 with rejects, _SUCCESS
		t.Errorf("%d files", len(clitest.Files(t, j.Object("both"))))
	}

	want := clitest.RunRaw(t, "head", j.Path("out"), "--json", "-n", "9000")
	if got := clitest.RunRaw(t, "head", bucket+"/from-disk", "--json", "-n", "9000", "--s3-endpoint", j.Proxy.URL, "--s3-path-style"); got != want || strings.Count(got, "\n") != 9000 {
		t.Errorf("head prints %d lines of S3, and %d of the disk, or others", strings.Count(got, "\n"), strings.Count(want, "\n"))
	}
	j.Put("crm/people.csv", "LinkedIn,last_name\nnetwork.example/in/ada,Example\n")
	said := clitest.RunRaw(t, "directory", "import", "--directory", j.Path("dir"), "--people", bucket+"/crm/*.csv", "--map", "network_url=linkedin",
		"--s3-endpoint", j.Proxy.URL, "--s3-path-style")
	if !strings.HasPrefix(said, "people   1 row ") {
		t.Errorf("import from S3: %s", said)
	}

	// A finished dataset is found finished, and nothing is written again.
	before := j.Proxy.Seen()
	writes := 0
	j.Proxy.Do(func(r *http.Request) s3test.Fault {
		if strings.Contains(r.URL.Path, "part-") {
			writes++
		}
		return s3test.Fault{}
	})
	if said := j.Run(0, bucket+"/lists/**.csv", bucket+"/both/", "--set", "rows_per_part=4000"); strings.Contains(said, "WARN") || writes > 0 {
		t.Errorf("the second time: %d requests about parts\n%s", writes, said)
	}
	if n := j.Proxy.Seen() - before; n > 20 {
		t.Errorf("%d requests for nothing", n)
	}

	// Another list under the name is another dataset's.
	j.Put("lists/2026/a.csv", strings.Replace(list, "person", "someone", 1))
	if said := j.Run(cli.ExitUsage, bucket+"/lists/**.csv", bucket+"/both/", flags...); !strings.Contains(said, "the input has changed") {
		t.Errorf("a changed list: %s", said)
	}
	j.Run(0, bucket+"/lists/**.csv", bucket+"/both/", append(flags, "--overwrite", "--set", "compression=zstd")...)
	j.Run(0, bucket+"/lists/2026/", j.Path("again"), append(flags, "--set", "compression=zstd")...)
	clitest.RequireFiles(t, "replaced", clitest.Files(t, j.Object("both")), clitest.Files(t, j.Path("again")))

	// Its report can be looked at, and is not written over.
	clitest.Run(t, "report", bucket+"/both/", "--out", j.Path("report.html"), "--s3-endpoint", j.Proxy.URL, "--s3-path-style")
	page, err := os.ReadFile(j.Path("report.html"))
	if there, other := os.ReadFile(j.Object("both/_report.html")); err != nil || other != nil || string(page) != string(there) {
		t.Errorf("the page: %d bytes of %d, %v, %v", len(page), len(there), err, other)
	}

	// Nothing is left of any of them.
	for _, left := range []string{"state/s3/*", "state/runs/*"} {
		if found, _ := filepath.Glob(j.Path(left)); len(found) > 0 {
			t.Errorf("left: %q", found)
		}
	}
	if left := j.Server.Uploads(t, clitest.S3Bucket); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
}

// A Parquet list is read by ranges: what is not asked for is not fetched.
func TestS3Parquet(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	j.Put("in/a.csv.gz", clitest.Packed(t, clitest.EmailList(20_000)))
	j.Put("people.csv", "email\nperson7@mail.example\n")
	j.Run(0, "s3://leads/in/a.csv.gz", "s3://leads/parquet/", "--quiet", "--hem-profiles", "uid2,google", "--suppress", "s3://leads/people.csv")
	j.Run(0, "s3://leads/parquet/", "s3://leads/again/", "--quiet", "--select", "id,answers")
	want, got := clitest.ReadDataset(t, j.Object("parquet")), clitest.ReadDataset(t, j.Object("again"))
	hem := want.Column(t, "hem_sha256")
	if n := want.Count(t, "outcome", "suppressed"); n != 1 {
		t.Errorf("%d rows are suppressed", n)
	}
	for i := range want.Rows {
		if want.Rows[i][hem] == "null" {
			continue // suppressed or rejected: the other run cannot know
		}
		if got.Rows[i][got.Column(t, "hem_sha256")] != want.Rows[i][hem] {
			t.Fatalf("row %d differs", i+1)
		}
	}
}

// Two processes on one dataset: one of them works, the other says why not, and
// does no harm.
func TestS3TwoProcesses(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	j.Put("in/a.csv", clitest.EmailList(2000))
	reached, goOn := make(chan struct{}), make(chan struct{})
	first := true
	j.Proxy.Do(func(r *http.Request) s3test.Fault {
		if first && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "part-") {
			first = false
			close(reached)
			<-goOn
		}
		return s3test.Fault{}
	})
	second := *j
	second.Proxy = s3test.NewProxy(t, j.Server) // the first one's is held
	p := clitest.StartProgram(t, j.Args("s3://leads/in/a.csv", "s3://leads/out/", "--quiet")...)
	<-reached
	for state, want := range map[string]string{
		"state":   "leadetl: --out: s3://leads/out/: in use by another process",
		"another": "leadetl: --out: s3://leads/out/_lock: in use by another process: process ",
	} {
		if said := second.Run(cli.ExitTryAgain, "s3://leads/in/a.csv", "s3://leads/out/", "--overwrite", "--state", j.Path(state)); !strings.HasPrefix(said, want) {
			t.Errorf("%s: %s\nwant %s", state, said, want)
		}
	}
	close(goOn)
	if code := p.Code(); code != 0 {
		t.Fatalf("the first ended with %d: %s", code, p.Said)
	}
	if _, err := os.Stat(j.Object("out/_lock")); !os.IsNotExist(err) {
		t.Errorf("the lock is left: %v", err)
	}
}

// A plan looks, and writes nothing, even where a run holds the dataset.
func TestS3Plan(t *testing.T) {
	j := clitest.NewS3Job(t)
	j.Put("in/a.csv", clitest.EmailList(10))
	j.Put("out/_lock", `{"holder":"somebody"}`)
	writes := 0
	j.Proxy.Do(func(r *http.Request) s3test.Fault {
		if s3test.IsWrite(r) {
			writes++
		}
		return s3test.Fault{}
	})
	args := j.Args("s3://leads/in/", "s3://leads/out/")
	args[0] = "plan"
	p := clitest.StartProgram(t, args...)
	if code := p.Code(); code != cli.ExitDone || writes > 0 || !strings.Contains(p.Printed.String(), "from s3://leads/in/a.csv") {
		t.Errorf("exit code %d, %d writes\n%s%s", code, writes, p.Printed, p.Said)
	}
	if said := j.Run(cli.ExitTryAgain, "s3://leads/in/", "s3://leads/out/"); !strings.Contains(said, "in use by another process") {
		t.Errorf("a lock without a holder: %s", said)
	}
}

// A store that is down in the middle delays a run, and a run that is
// interrupted meanwhile does not wait for it.
func TestS3Outage(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	j.Put("in/a.csv", clitest.EmailList(3000))
	for _, interrupted := range []bool{false, true} {
		down, refused := 0, make(chan struct{}, 1)
		j.Proxy.Do(func(r *http.Request) s3test.Fault {
			if !strings.Contains(r.URL.Path, "part-00001") && down == 0 {
				return s3test.Fault{}
			}
			if down++; down < 12 || interrupted {
				select {
				case refused <- struct{}{}:
				default:
				}
				return s3test.Fault{Kind: s3test.Reset}
			}
			return s3test.Fault{}
		})
		p := clitest.StartProgram(t, j.Args("s3://leads/in/", "s3://leads/out/", "--set", "rows_per_part=1000", "--workers", "1", "--quiet", "--overwrite", "--set", "compression="+map[bool]string{true: "zstd", false: "snappy"}[interrupted])...)
		<-refused
		want := cli.ExitDone
		if interrupted {
			want = cli.ExitInterrupted
			if err := p.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
		if code := p.Code(); code != want {
			t.Errorf("interrupted %v: exit code %d, want %d\n%s", interrupted, code, want, p.Said)
		}
	}
	j.Proxy.Do(nil) // the lock that could not be removed is the same user's
	j.Run(0, "s3://leads/in/", "s3://leads/out/", "--set", "rows_per_part=1000", "--set", "compression=zstd", "--quiet", "--overwrite")
}

// Files that are of no dataset are left alone, and so is a dataset without its
// state.
func TestS3Foreign(t *testing.T) {
	j := clitest.NewS3Job(t)
	j.Put("in/a.csv", clitest.EmailList(10))
	j.Put("out/notes.txt", "mine")
	j.Put("out/deep/part-00000.parquet", "mine")
	if said := j.Run(cli.ExitUsage, "s3://leads/in/a.csv", "s3://leads/out", "--overwrite"); !strings.Contains(said, "s3://leads/out/: folder holds other files (") {
		t.Error(said)
	}
	if got := clitest.Files(t, j.Object("out")); len(got) != 2 {
		t.Errorf("%v", got)
	}
	j.Put("half/part-00000.parquet", "of an unfinished run")
	if said := j.Run(cli.ExitUsage, "s3://leads/in/a.csv", "s3://leads/half"); !strings.Contains(said, "unfinished, and its progress is not under") {
		t.Error(said)
	}
	for _, c := range []struct{ in, out string }{
		{"s3://leads/in/", "s3://leads/in/"}, {"s3://leads/in/", "s3://leads/in/out"}, {"s3://leads/**", "s3://leads/in/out/"},
		{"s3://leads/*/*.parquet", "s3://leads/new"}, {"s3://leads", "s3://leads/new/"},
	} {
		if said := j.Run(cli.ExitUsage, c.in, c.out); !strings.Contains(said, "--in "+c.in+" would read the files of --out "+c.out) {
			t.Error(said)
		}
	}
	if said := j.Run(cli.ExitUsage, "s3://leads/in/a.csv", "s3://leads/in/"); !strings.Contains(said, "s3://leads/in/a.csv is in the output folder; give another --out") {
		t.Error(said)
	}
}

// A dataset below a prefix of lists is left out, and one that is named is read.
func TestS3DatasetAmongLists(t *testing.T) {
	j := clitest.NewS3Job(t)
	j.Put("in/a.csv", clitest.EmailList(10))
	j.Put("in/other/_manifest.json", `{"entries": []}`)
	j.Put("in/other/b.csv", clitest.EmailList(10))
	j.Run(0, "s3://leads/in/a.csv", "s3://leads/in/out", "--quiet")
	for _, in := range []string{"s3://leads/in/", "s3://leads/in/**.[cp]*", "s3://leads/i*/**/[abp]*"} {
		said := j.Run(0, in, "s3://leads/next/", "--quiet", "--overwrite")
		if strings.Count(said, "left out a dataset; name it itself to read it") != 1 || !strings.Contains(said, "dataset=s3://leads/in/out") {
			t.Errorf("%s: %s", in, said)
		}
		if got := j.Rows("next"); got != 20 {
			t.Errorf("%s: %d rows, want 20", in, got)
		}
	}
	for _, in := range []string{"s3://leads/in/out/", "s3://leads/in/out/part-00000.parquet", "s3://leads/*/out/p*", "s3://leads/in/out/**.parquet"} {
		if said := j.Run(0, in, "s3://leads/next/", "--quiet", "--overwrite"); strings.Contains(said, "left out") || j.Rows("next") != 10 {
			t.Errorf("%s: %d rows, %s", in, j.Rows("next"), said)
		}
	}
}

// What a store refuses ends the run before any row, with what to check; a
// store out of reach ends it so that it can go on.
func TestS3Refused(t *testing.T) {
	j := clitest.NewS3Job(t)
	j.Put("in/a.csv", clitest.EmailList(10))
	refuse := func(status int, code string, which func(*http.Request) bool) func(*http.Request) s3test.Fault {
		return func(r *http.Request) s3test.Fault {
			if which(r) {
				return s3test.Fault{Kind: s3test.Refuse, Status: status, Code: code, Text: "no"}
			}
			return s3test.Fault{}
		}
	}
	always := func(*http.Request) bool { return true }
	for _, c := range []struct {
		name    string
		env     []string // name, value
		fault   func(*http.Request) s3test.Fault
		in, out string
		code    int
		want    string // regular expression
	}{
		{"wrong secret", []string{"AWS_SECRET_ACCESS_KEY", "CanaryWrong"}, nil, "s3://leads/in/a.csv", "s3://leads/out", cli.ExitUsage, `the secret key does not match the access key`},
		{"missing bucket", nil, nil, "s3://leeds/in/a.csv", "s3://leads/out", cli.ExitUsage, `the bucket does not exist \(bucket leeds, region us-east-1`},
		{"missing bucket for the dataset", nil, nil, "s3://leads/in/a.csv", "s3://leeds/out", cli.ExitUsage, `--out: s3://leeds/out/: the bucket does not exist`},
		{"missing object", nil, nil, "s3://leads/in/b.csv", "s3://leads/out", cli.ExitUsage, `s3://leads/in/b.csv does not exist`},
		{"nothing matches", nil, nil, "s3://leads/in/*.tsv", "s3://leads/out", cli.ExitUsage, `s3://leads/in/\*.tsv matches no object`},
		{"no permission to list", nil, refuse(403, "AccessDenied", s3test.IsList), "s3://leads/in/", "s3://leads/out", cli.ExitUsage, `may not list it .*; allow s3:ListBucket on arn:aws:s3:::leads`},
		{"no permission to write", nil, refuse(403, "AccessDenied", s3test.IsWrite), "s3://leads/in/a.csv", "s3://leads/out", cli.ExitUsage, `may not write it .*; allow s3:PutObject on arn:aws:s3:::leads/out/_lock`},
		{"clock skew", nil, refuse(403, "RequestTimeTooSkewed", always), "s3://leads/in/", "s3://leads/out", cli.ExitUsage, `this machine's clock is too far off`},
		{"expired credentials", nil, refuse(400, "ExpiredToken", always), "s3://leads/in/", "s3://leads/out", cli.ExitUsage, `the credentials have expired`},
		{"expired in the middle", nil, refuse(400, "ExpiredToken", func(r *http.Request) bool { return strings.Contains(r.URL.Path, "part-") }), "s3://leads/in/", "s3://leads/out", cli.ExitUsage, `the credentials have expired .*; get new ones and run the same command to resume`},
		{"out of reach", nil, refuse(503, "ServiceUnavailable", always), "s3://leads/in/", "s3://leads/out", cli.ExitTryAgain, `the store does not answer \(ServiceUnavailable, HTTP 503\)`},
		{"out of reach in the middle", nil, refuse(503, "SlowDown", func(r *http.Request) bool { return strings.Contains(r.URL.Path, "part-") }), "s3://leads/in/", "s3://leads/out", cli.ExitTryAgain, `the store does not answer \(SlowDown, HTTP 503\).*0 parts done; run the same command to resume`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.env != nil {
				t.Setenv(c.env[0], c.env[1])
			}
			j.Proxy.Do(c.fault)
			defer j.Proxy.Do(nil)
			here := *j
			here.TB = t
			said := here.Run(c.code, c.in, c.out, "--set", "s3_give_up_after=1s", "--quiet")
			if !regexp.MustCompile(c.want).MatchString(said) {
				t.Errorf("%s\nwant %s", said, c.want)
			}
			for _, secret := range []string{s3test.SecretKey, "CanaryWrong", s3test.AccessKey} {
				if strings.Contains(said, secret) {
					t.Errorf("a secret is said: %s", said)
				}
			}
		})
	}
	j.Run(0, "s3://leads/in/", "s3://leads/out", "--quiet") // it continues
}

// TestS3DatasetIsProved: a dataset on S3 is read back as one in a folder is,
// and damage is found there too.
func TestS3DatasetIsProved(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	out := "s3://" + clitest.S3Bucket + "/out/"
	j.Run(cli.ExitDone, clitest.Samples+"/emails.csv", out)
	look := func(want int, args ...string) string {
		t.Helper()
		p := clitest.StartProgram(j, clitest.OnStore(j.Proxy.URL, args...)...)
		if got := p.Code(); got != want {
			t.Fatalf("%s ended with exit code %d, want %d:\n%s", args[0], got, want, clitest.Tail(p.Said.String()))
		}
		return p.Said.String()
	}
	look(cli.ExitDone, "verify", out)
	look(cli.ExitDone, "schema", "--dataset", out, "--dialect", "duckdb")
	part := j.Object("out/part-00000.parquet")
	data, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(part, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if said := look(cli.ExitRejects, "verify", out); !strings.Contains(said, ": 1 issue found") {
		t.Errorf("verify says\n%s", said)
	}
	look(cli.ExitUsage, "verify", "s3://"+clitest.S3Bucket+"/nothing/")
}
