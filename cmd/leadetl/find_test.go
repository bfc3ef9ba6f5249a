package main

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// spelling is an identifier as somebody may write it, and what it is compared by.
type spelling struct {
	text string
	by   []string
}

// digests are a text's digests of all algorithms that lists have, in every spelling.
func digests(of, text string) (all []spelling) {
	m, s, l := md5.Sum([]byte(text)), sha1.Sum([]byte(text)), sha256.Sum256([]byte(text))
	for name, sum := range map[string][]byte{"md5 ": m[:], "sha1 ": s[:], "sha256 ": l[:]} {
		lower := hex.EncodeToString(sum)
		all = append(all, spelling{lower, []string{name + of}}, spelling{strings.ToUpper(lower), []string{name + of}})
	}
	all = append(all, spelling{base64.StdEncoding.EncodeToString(l[:]), []string{"sha256 " + of}})
	slices.SortFunc(all, func(a, b spelling) int {
		return strings.Compare(a.by[0]+fmt.Sprint(len(a.text)), b.by[0]+fmt.Sprint(len(b.text)))
	})
	return all
}

// byAll are the digests of forms by which a plain identifier is known.
func byAll(forms ...string) (all []string) {
	for _, form := range forms {
		all = append(all, "md5 "+form, "sha1 "+form, "sha256 "+form)
	}
	return all
}

// canary is the n-th canary of a kind, as a list and as data have it. All plain spellings have mark.
type canary struct {
	kind            string
	subjects, datas func(n int) []spelling
}

var (
	mark     = regexp.MustCompile(`(?i)canary|202\D{0,2}555\D?[0-9]{4}|2a00:0*ca:|[0-9a-f]{32,64}|[0-9A-Za-z+/]{43}=`)
	canaries = []canary{
		{"email", emails, func(n int) []spelling { return emails(n) }},
		{"phone", func(n int) []spelling {
			var all []spelling
			for _, s := range phones(n) {
				all = append(all, spelling{s, []string{"sha256 e164", "sha256 digits"}})
			}
			return slices.Concat(all, phoneDigests(n))
		}, func(n int) []spelling {
			var all []spelling
			for _, s := range phones(n) {
				all = append(all, spelling{s, byAll("e164", "digits", "last10")})
			}
			for _, d := range phoneDigests(n) {
				if strings.HasPrefix(d.by[0], "sha256") {
					all = append(all, d)
				}
			}
			return all
		}},
		{"network_url", func(n int) []spelling {
			return append(urls(n), digests("key", fmt.Sprintf("linkedin.com/in/canary-%d", n))...)
		}, urls},
		{"ip", func(n int) []spelling { return append(ips(n), digests("ip", fmt.Sprintf("2a00:ca::%x", n+1))...) }, ips},
	}
)

func emails(n int) []spelling {
	plain, bare, tagged := fmt.Sprintf("canary.%d@gmail.com", n), fmt.Sprintf("canary%d@gmail.com", n), fmt.Sprintf("c.anary.%d+News@gmail.com", n)
	return slices.Concat([]spelling{
		{plain, byAll("plain", "bare")}, {strings.ToUpper(plain), byAll("plain", "bare")}, {tagged, byAll("tagged", "bare")},
	}, digests("plain", plain), digests("bare", bare))
}

func phones(n int) []string {
	return []string{fmt.Sprintf("+1202555%04d", n), fmt.Sprintf("(202) 555-%04d", n), fmt.Sprintf("202.555.%04d", n), fmt.Sprintf("1-202-555-%04d", n), fmt.Sprintf("202555%04d", n)}
}

func phoneDigests(n int) []spelling {
	digits := fmt.Sprintf("1202555%04d", n)
	return slices.Concat(digests("e164", "+"+digits), digests("digits", digits), digests("last10", digits[1:]))
}

func urls(n int) (all []spelling) {
	for _, form := range []string{"https://www.linkedin.com/in/canary-%d/", "LINKEDIN.COM/in/Canary-%d", "http://linkedin.com/in/canary-%d?utm_source=x"} {
		all = append(all, spelling{fmt.Sprintf(form, n), byAll("key")})
	}
	return all
}

func ips(n int) []spelling {
	return []spelling{{fmt.Sprintf("2a00:ca::%x", n+1), byAll("ip")}, {fmt.Sprintf("2A00:00CA:0:0:0:0:0:%04X", n+1), byAll("ip")}}
}

// planted is a canary in a place.
type planted struct {
	kind, subject, data string
	line                int
	found               bool // that is what their forms allow
}

// foundIn are the lines of a record of find, by place and part of it.
func foundIn(t *testing.T, file string) (found map[string]bool, remove [][2]string) {
	t.Helper()
	var record struct {
		Found []struct {
			Line        int
			Place, What string
		}
		NotRead []any `json:"not_read"`
		Remove  []struct{ Place, Command string }
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil || len(record.NotRead) > 0 {
		t.Fatalf("%v, not read: %v", err, record.NotRead)
	}
	found = map[string]bool{}
	for _, f := range record.Found {
		found[fmt.Sprint(f.Line, " ", f.Place, " ", f.What)] = true
	}
	for _, r := range record.Remove {
		remove = append(remove, [2]string{r.Place, r.Command})
	}
	return found, remove
}

const findJob = `operation: enrichment
in: profiles.csv
out: asked
want: [last_name]
resolvers:
  - directory: dir
  - http://127.0.0.1:1
`

// plantedPlaces are the parts of places, and the kinds that they can have in every spelling.
var plantedPlaces = []struct{ place, what, kinds string }{
	{"hems", "rows", "email phone network_url ip"},
	{"hems", "_rejects", "email phone network_url ip"},
	{"nights/dt=1", "rows", "email phone network_url ip"},
	{"state", "key", "email network_url ip"},
	{"state", "body", "email phone network_url ip"},
	{"dir", "people", "email phone network_url"},
	{"dir", "visits", "network_url ip"},
	{"dir", "searches", "email network_url"},
	{"list.txt", "list", "email phone network_url ip"},
}

// plant are n canaries over all places and pairs of spellings.
func plant(n int) map[string][]planted {
	all := map[string][]planted{}
	for line := 1; ; {
		for pair := range 700 {
			for _, c := range canaries {
				for _, p := range plantedPlaces {
					if !slices.Contains(strings.Fields(p.kinds), c.kind) {
						continue
					}
					subjects, datas := c.subjects(line-1), c.datas(line-1)
					s, d := subjects[pair%len(subjects)], datas[pair/len(subjects)%len(datas)]
					if p.place == "dir" {
						d = datas[0]
					}
					found := slices.ContainsFunc(s.by, func(by string) bool { return slices.Contains(d.by, by) })
					all[p.place+" "+p.what] = append(all[p.place+" "+p.what], planted{c.kind, s.text, d.text, line, found})
					if line++; line > n {
						return all
					}
				}
			}
		}
	}
}

// row is a row of the input, with a canary in the column of its kind.
func (p planted) row() string {
	cells := map[string]string{"email": fmt.Sprintf("nobody-%d@x.example", p.line), p.kind: p.data}
	return fmt.Sprintf("%d,%s,%s,%s,%s\n", p.line, cells["email"], cells["phone"], cells["network_url"], cells["ip"])
}

// TestFindCanaries: 10,000 people are in every place in every spelling. Each is found where a form allows it, and
// nowhere else, none is named, and none is found after the commands that are printed.
func TestFindCanaries(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("LEADETL_KEY_SERVICE", "unused") // the directory has all that is wanted
	all := plant(10_000)
	want, forms, texts := map[string]bool{}, map[int]planted{}, map[string]bool{}
	expect := func(p planted, in string) {
		if p.found {
			want[fmt.Sprint(p.line, " ", in)] = true
		}
	}
	who := make([]string, 10_000)
	const header = "id,email,phone,network_url,ip\n"
	files := map[string]string{"hems.csv": header, "1.csv": header, "2.csv": header + "0,nobody@x.example,,,\n", "job.yaml": findJob}
	people, visits, searches, asked := "network_url,last_name,email,phones\n", "ip,network_url\n", "keyword,searched_at,network_url,email\n", "id,network_url\n"
	spared := map[string]string{ // the sources without them
		"people.csv": people + "linkedin.com/in/nobody,Doe,,\n", "visits.csv": visits + "192.31.196.5,linkedin.com/in/nobody\n", "searches.csv": searches + "tea,2026-11-01T08:00:00Z,linkedin.com/in/nobody,\n",
		"profiles.csv": asked + "0,linkedin.com/in/nobody\n",
	}
	store, err := answers.Open(t.Context(), wire.Answers("state").Of(""), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for in, some := range all {
		for _, p := range some {
			who[p.line-1], forms[p.line] = p.subject, p
			texts[p.subject], texts[p.data] = true, true
			url := fmt.Sprintf("linkedin.com/in/nobody-%d", p.line)
			if p.kind == "network_url" {
				url = p.data
			}
			value := func(kind string) string {
				if p.kind == kind {
					return p.data
				}
				return ""
			}
			switch in {
			case "hems rows":
				files["hems.csv"] += p.row()
				expect(p, in)
			case "hems _rejects":
				files["hems.csv"] += fmt.Sprintf("%d, %s\n", p.line, p.data)
				expect(p, in)
			case "nights/dt=1 rows":
				files["1.csv"] += p.row()
				expect(p, in)
				expect(p, "nights/dt=2 _changes")
			case "state key":
				err = errors.Join(err, clitest.Buy(store, p.line, "s", "enrichment", p.data, "no_match", "", "2026-11-01", "{}"))
				expect(p, "state/answers answer")
			case "state body":
				err = errors.Join(err, clitest.Buy(store, p.line, "s", "enrichment", fmt.Sprint("linkedin.com/in/nobody-", p.line), "matched", "", "2026-11-01", fmt.Sprintf(`{"data":{"any":[{"of":%q}]}}`, p.data)))
				expect(p, "state/answers answer")
			case "dir people":
				people += url + ",Doe," + value("email") + "," + value("phone") + "\n"
				asked += fmt.Sprintf("%d,%s\n", p.line, url)
				expect(p, in)
				expect(p, "asked rows")
				if p.kind == "network_url" {
					expect(p, "asked _asked")
				}
			case "dir visits":
				visits += cmp.Or(value("ip"), fmt.Sprintf("2a00:cb::%x", p.line)) + "," + url + "\n"
				expect(p, in)
			case "dir searches":
				searches += "tea,2026-11-01T08:00:00Z," + url + "," + value("email") + "\n"
				expect(p, in)
			case "list.txt list":
				files["list.txt"] += p.data + "\n"
				expect(p, in)
			}
		}
	}
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	files["who.txt"] = strings.Join(who, "\n") + "\n"
	files["people.csv"], files["visits.csv"], files["searches.csv"], files["profiles.csv"] = people, visits, searches, asked
	writeFiles(t, files)
	run := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := program.Execute(t.Context(), args, strings.NewReader(""), &out, &out); code != cli.ExitDone && code != cli.ExitRejects {
			t.Fatalf("leadetl %s: exit code %d\n%s", strings.Join(args, " "), code, clitest.Tail(out.String()))
		}
		return out.String()
	}
	run("directory", "import", "--directory", "dir", "--people", "people.csv", "--visits", "visits.csv", "--searches", "searches.csv")
	run("run", "email_to_hem", "--in", "hems.csv", "--out", "hems", "--hem-profiles", "uid2,google")
	run("run", "email_to_hem", "--in", "1.csv", "--out", "nights", "--partition-by", "dt=1")
	run("run", "email_to_hem", "--in", "2.csv", "--out", "nights", "--partition-by", "dt=2", "--changes-from", "previous")
	run("run", "--job", "job.yaml")
	find := func(record string) string {
		t.Helper()
		printed := run("find", "--file", "who.txt", "--state", "state", "--directory", "dir", "--suppress", "list.txt", "--json", record, "hems", "nights", "asked")
		data, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range mark.FindAllString(printed+string(data), -1) {
			if texts[text] || !hashLike.MatchString(text) {
				t.Fatalf("a canary is named: %s", text)
			}
		}
		return printed
	}
	find("before.json")
	found, remove := foundIn(t, "before.json")
	for _, wrong := range []struct {
		name     string
		of, less map[string]bool
	}{{"not found", want, found}, {"found", found, want}} {
		var lines []string
		for _, hit := range slices.Sorted(maps.Keys(wrong.of)) {
			if !wrong.less[hit] {
				var line int
				fmt.Sscan(hit, &line)
				lines = append(lines, fmt.Sprintf("%s: %s by %s", hit, forms[line].data, forms[line].subject))
			}
		}
		if len(lines) > 0 {
			t.Errorf("%d are %s, such as\n%s", len(lines), wrong.name, strings.Join(lines[:min(len(lines), 20)], "\n"))
		}
	}
	for _, r := range remove {
		place, command := r[0], strings.Fields(r[1])[1:]
		switch place {
		case "dir": // they are deleted from its sources first
			writeFiles(t, spared)
		case "asked": // its resolvers are in its job
			command = []string{"run", "--job", "job.yaml", "--suppress", "who.txt", "--overwrite"}
		}
		run(command...)
	}
	find("after.json")
	found, remove = foundIn(t, "after.json")
	maps.DeleteFunc(found, func(hit string, _ bool) bool { return want[hit] && strings.HasSuffix(hit, " list.txt list") })
	if len(found) > 0 || len(remove) > 0 {
		t.Errorf("%d are found after the removal, such as %v; to remove: %v", len(found), slices.Sorted(maps.Keys(found))[:min(len(found), 20)], remove)
	}
}

var hashLike = regexp.MustCompile(`^([0-9a-fA-F]{32,64}|[0-9A-Za-z+/]{43}=)$`)

func writeFiles(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
