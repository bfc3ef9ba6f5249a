//go:build unix

package resolvers

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

const (
	droppedPeople = 40
	droppedPart   = 15 // rows
	emailList     = "20260801_1234_Email.csv"
	phoneList     = "20260801_1234_Phone.csv"
)

// dropped is an order about people of several countries, some of whom are on lists of DROP.
type dropped struct {
	*four
	keys   []string // of the rows
	listed []string // emails and phones
	who    []string // the resolver that a listed value is from
}

// newDropped lists somebody that each resolver finds: three by the phone, the others by the email. The
// rows of some people are there twice, in other parts and countries.
func newDropped(t *testing.T) *dropped {
	x := &dropped{}
	for i := range droppedPeople {
		x.keys = append(x.keys, fmt.Sprint("network.example/in/person-", i))
	}
	x.keys = append(x.keys, x.keys[:6]...)
	list := "network_url,country\n"
	for i, key := range x.keys {
		list += "https://" + key + "," + []string{"US", "DE", "", "US", "FR"}[i%5] + "\n"
	}
	x.four = newFour(t, list, func(_, slow *badservice.ProviderOptions, _ *badservice.Options) { slow.Polls = 0 })
	x.job += fmt.Sprint("compression: none\nrows_per_part: ", droppedPart, "\n")
	for _, name := range []string{"embedded", "bulk", "slow", "leads"} {
		for i, key := range x.keys[:droppedPeople] {
			if row := asks(key, x.known, x.listed...); row.emailBy == name && i%2 == 0 {
				x.list(row.email, name)
				break
			}
		}
		for i, key := range x.keys[:droppedPeople] {
			if row := asks(key, x.known, x.listed...); row.phoneBy == name && i%2 == 1 {
				x.list(row.phone, name)
				break
			}
		}
	}
	return x
}

func (x *dropped) list(value, from string) {
	x.listed, x.who = append(x.listed, value), append(x.who, from)
}

// lists writes the lists with some of the values, each with somebody who is nowhere.
func (x *dropped) lists(values []string) (flags []string) {
	x.Helper()
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	emails, phones := "ID,Hash\n0,"+hash("nobody@nowhere.example")+"\n", "ID,Hash\n0,"+hash("2025559999")+"\n"
	for i, value := range values {
		if strings.Contains(value, "@") {
			emails += fmt.Sprintf("%d,%s\n", i+1, hash(value))
		} else {
			phones += fmt.Sprintf("%d,%s\n", i+1, hash(value[len(value)-10:]))
		}
	}
	x.write(emailList, emails)
	x.write(phoneList, phones)
	return []string{"--suppress", x.path(emailList), "--suppress", x.path(phoneList), "--drop-answers", x.path("drop")}
}

// requireDropped holds a dataset to the model with some listed values, row for row, and what it says
// was asked; and the responses to the platform, which say that each value was found.
func (x *dropped) requireDropped(t *testing.T, out string, listed []string) {
	t.Helper()
	rows := readParted(t, out)
	cell := func(row []string, name string) string {
		return strings.Replace(row[rows.Column(t, name)], "null", "", 1)
	}
	slices.SortStableFunc(rows.Rows, func(a, b []string) int {
		number := func(row []string) int { n, _ := strconv.Atoi(cell(row, "source_row")); return n }
		return cmp.Compare(number(a), number(b))
	})
	if len(rows.Rows) != len(x.keys) {
		t.Fatalf("%d rows, want %d", len(rows.Rows), len(x.keys))
	}
	var said []string
	seen := map[string]bool{}
	suppressed := 0
	for i, row := range rows.Rows {
		key := x.keys[i]
		want := asks(key, x.known, listed...)
		got := expected{credits: want.credits, asked: want.asked, answeredBy: cell(row, "answered_by"), emailBy: cell(row, "email_answered_by"), phoneBy: cell(row, "phone_answered_by"), email: cell(row, "email"), phone: cell(row, "phone")}
		got.suppressed = strings.TrimPrefix(cell(row, "reason"), "suppressed_answer:")
		if credits, _ := strconv.ParseInt(cell(row, "credits"), 10, 64); fmt.Sprint(got) != fmt.Sprint(want) || credits != want.credits {
			t.Errorf("row %d: %+v for %d credits, want %+v", i+1, got, credits, want)
		}
		shown := key
		if want.suppressed != "" {
			shown = "null"
			suppressed++
			for _, name := range []string{"key", "network_url", "in_network_url", "resolution_id", "country", "full_name", "hem_sha256", "company_name"} {
				if slices.Contains(rows.Names, name) && cell(row, name) != "" {
					t.Errorf("row %d is suppressed and has %s %s", i+1, name, cell(row, name))
				}
			}
		}
		if in := fmt.Sprint(i/droppedPart, key); !seen[in] {
			seen[in] = true
			for _, answer := range want.asked {
				said = append(said, shown+" "+answer)
			}
		}
	}
	a := clitest.ReadAsked(t, out)
	var asked []string
	for _, row := range a.Rows {
		key := row[a.Column(t, "key")]
		asked = append(asked, key+" "+row[a.Column(t, "resolver")]+" "+row[a.Column(t, "outcome")])
		if key == "null" && row[a.Column(t, "request_id")] != "null" {
			t.Errorf("a suppressed key has the call %s", row[a.Column(t, "request_id")])
		}
	}
	if !slices.Equal(asked, said) {
		t.Errorf("asked is\n%s\nwant\n%s", strings.Join(asked, "\n"), strings.Join(said, "\n"))
	}
	if report := clitest.LastReport(t, out); report.Totals.Suppressed != int64(suppressed) || suppressed < len(listed) {
		t.Errorf("%d rows are suppressed, the report says %d", suppressed, report.Totals.Suppressed)
	}
	x.executes(cli.ExitDone, "verify", out)
	emails, phones := "Id,Status\n0,5\n", "Id,Status\n0,5\n"
	for i, value := range listed {
		if strings.Contains(value, "@") {
			emails += fmt.Sprintf("%d,3\n", i+1)
		} else {
			phones += fmt.Sprintf("%d,3\n", i+1)
		}
	}
	for name, want := range map[string]string{emailList: emails, phoneList: phones} {
		if got, err := os.ReadFile(filepath.Join(x.path("drop"), name)); string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
}

// readParted reads the parts of a dataset, in folders of a partition too.
func readParted(t *testing.T, out string) *clitest.Dataset {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(out, "country=*"))
	if err != nil || len(folders) == 0 {
		return clitest.ReadDataset(t, out)
	}
	all := &clitest.Dataset{}
	for _, folder := range folders {
		d := clitest.ReadParts(t, folder)
		all.Names, all.Rows = d.Names, append(all.Rows, d.Rows...)
	}
	return all
}

// requireAsked: each resolver has been asked about the keys of the model, once.
func (x *dropped) requireAsked(t *testing.T, listed []string) {
	t.Helper()
	for _, r := range x.known[1:] {
		want := map[string]int{}
		for _, key := range x.keys {
			if slices.ContainsFunc(asks(key, x.known, listed...).asked, func(said string) bool { return strings.HasPrefix(said, r.name+" ") }) {
				want[key] = 1
			}
		}
		got := map[string]int{}
		for _, a := range x.ledgers()[r.name] {
			got[a.Key]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is asked about %v, want %v", r.name, got, want)
		}
	}
}

// TestDrop: whoever is listed is left out of all files, no resolver is asked after the one that names
// them, and the platform is told so; in one run, in one that a budget stops, and in one that somebody is
// added to; in one folder, and in a folder for each country.
func TestDrop(t *testing.T) {
	t.Parallel()
	for _, partition := range []string{"", "partition_by: [country]\n"} {
		t.Run(partition, func(t *testing.T) {
			t.Parallel()
			x := newDropped(t)
			x.job += partition
			if !slices.Equal(slices.Compact(slices.Clone(x.who)), []string{"embedded", "bulk", "slow", "leads"}) {
				t.Fatalf("values of %v are listed", x.who)
			}
			some := x.listed[:2]
			x.set("bulk", "max_calls: 20")
			x.run(cli.ExitBudget, x.lists(some)...)
			if _, err := os.Stat(x.path("drop")); err == nil {
				t.Error("an unfinished run answers the platform")
			}
			x.set("bulk", "max_calls: 1000")
			x.run(cli.ExitDone, x.lists(some)...)
			x.requireDropped(t, x.path("out"), some)
			x.requireAsked(t, some)
		})
		t.Run(partition+"added", func(t *testing.T) {
			t.Parallel()
			x := newDropped(t)
			x.job += partition
			x.set("slow", "max_calls: 5")
			x.run(cli.ExitBudget, x.lists(x.listed[:1])...)
			x.set("slow", "max_calls: 1000")
			x.run(cli.ExitDone, x.lists(x.listed)...)
			x.requireDropped(t, x.path("out"), x.listed)
		})
		t.Run(partition+"published", func(t *testing.T) {
			t.Parallel()
			x := newDropped(t)
			x.run(cli.ExitDone, "--out", x.path("first"))
			x.requireAsked(t, nil)
			x.job += partition
			seen := x.seen()
			x.run(cli.ExitDone, append(x.lists(x.listed), "--changes-from", x.path("first"))...)
			x.requireDropped(t, x.path("out"), x.listed)
			x.run(cli.ExitDone, append(x.lists(x.listed), "--out", x.path("again"), "--offline")...)
			x.requireDropped(t, x.path("again"), x.listed)
			if x.seen() != seen {
				t.Errorf("%d calls for what is stored", x.seen()-seen)
			}
			x.executes(cli.ExitDone, "answers", "forget", "--file", x.path(emailList), "--file", x.path(phoneList), "--state", x.path("state"))
			for _, folder := range []string{"out", "again", "state"} {
				for _, value := range x.listed {
					clitest.RequireNowhere(t, x.path(folder), value)
				}
			}
		})
	}
}
