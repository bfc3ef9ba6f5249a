package servecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/fileaccess"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/testdata"
)

// demo is the environment of a trial service: the sample directory and an
// organization. Both are removed when it ends. A state folder that the user
// named stays.
type demo struct {
	folder           string
	lock             *filelock.Lock // locks folder while this process lives
	directory, state string
	key, secret      string
}

// demoCredits are the initial credits of a demo organization.
const demoCredits = 1000

func newDemo(ctx context.Context, flags *pflag.FlagSet) (_ *demo, err error) {
	removeKilled(os.TempDir())
	folder, err := os.MkdirTemp("", demoPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Folder(folder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	d := &demo{folder: folder, lock: lock, directory: filepath.Join(folder, "directory"), state: filepath.Join(folder, "state")}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.remove())
		}
	}()
	if flags.Changed("state") {
		return nil, cli.UsageError(errors.New("--demo keeps nothing; leave --state out"))
	}
	sources := filepath.Join(folder, "sources")
	if err := os.CopyFS(sources, testdata.Sample); err != nil {
		return nil, err
	}
	file := func(name string) string { return filepath.Join(sources, "directory", name) }
	_, err = directory.Import(ctx, d.directory, directory.Files{
		People: file("people.csv"), Companies: file("companies.csv"), IPRanges: file("ip-ranges.csv"),
		Searches: file("searches.csv"), Visits: file("visits.csv"),
	}, directory.DefaultOptions())
	return d, err
}

// open creates the organization and its key.
func (d *demo) open(ctx context.Context, s *sqlite.Store, pepper credential.Pepper) error {
	d.secret = callback.NewSecret().Reveal()
	org, err := s.CreateOrganization(ctx, "demo", demoCredits, pepper.Seal([]byte(d.secret)), time.Now())
	if err != nil {
		return err
	}
	d.key, _, err = account.Keys{State: s, Pepper: pepper, Now: time.Now}.Make(ctx, nil, account.NewKey{Organization: org.ID, Label: "demo"})
	return err
}

func (d *demo) remove() error { return errors.Join(os.RemoveAll(d.folder), d.lock.Release()) }

// demoPrefix is the prefix of the folder names of demos.
const demoPrefix = "leadetl-demo-"

// removeKilled removes the folders of killed demos: folders of this user that
// no process has locked. It skips new folders, because a demo may just be
// starting.
func removeKilled(temporary string) {
	folders, err := filepath.Glob(filepath.Join(temporary, demoPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || !fileaccess.IsOwn(info) || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if lock, err := filelock.Folder(folder); err == nil {
			_ = errors.Join(os.RemoveAll(folder), lock.Release()) // the next demo removes what stays
		}
	}
}

// print prints how to call the service, and where its metrics and its dashboard are, if it
// has them.
func (d *demo) print(to io.Writer, url, internal string, dashboard bool) error {
	const call = "curl -s %s%s -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '%s'\n"
	_, err := fmt.Fprintf(to, `Serving the sample directory at %s until this is stopped (Ctrl-C).
Its organization has %s credits.

  key              %s
  callback secret  %s
`, url, figures.Grouped(demoCredits), d.key, d.secret)
	if err == nil && internal != "" {
		_, err = fmt.Fprintf(to, "  metrics          %s/metrics\n", internal)
	}
	if err == nil && dashboard {
		_, err = fmt.Fprintf(to, "  dashboard        %s/account, sign in with the key\n", url)
	}
	if err == nil {
		_, err = fmt.Fprintln(to)
	}
	for _, c := range []struct{ path, body string }{
		{"/lead/enrichment", `{"network_url":"https://network.example/in/ada-example"}`},
		{"/lead/resolution/ip_to_company", `{"ip":"192.31.196.5"}`},
		{"/resolve/keyword_to_lead", `{"keywords":["rocket fuel"],"date_start":"2026-11-01","date_end":"2026-11-20","deanonymize":true}`},
	} {
		if err == nil {
			_, err = fmt.Fprintf(to, call, url, c.path, d.key, c.body)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(to, `
The third begins a search; its result is fetched with the resolution's id from
/resolve/keyword_to_lead/result. That and everything else is at %s/docs
Callbacks to this machine need --callback-allow 127.0.0.0/8.
`, url)
	}
	return err
}
