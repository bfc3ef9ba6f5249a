package audience_test

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/audience"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/platform"
)

// data is a dataset in memory. The columns of the input come first.
type data struct {
	operation string
	input     []string
	id        string // the identifier, which the dataset may not have
	own       []string
	asks      bool
	rules     int
	rows      [][]string
}

func (d data) manifest(t testing.TB) *sinks.Manifest {
	job := map[string]any{"id_column": d.id, "input_columns": d.input}
	if d.asks {
		job["answers"] = "reference data"
	}
	settings, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	m := &sinks.Manifest{Operation: d.operation, Job: settings, RulesVersion: d.rules}
	for _, name := range slices.Concat(d.input, d.own) {
		m.Schema = append(m.Schema, schema.Text(name))
	}
	return m
}

// people are the lines of the rows, each person once.
func (d data) people(t testing.TB, s audience.Settings) (lines []string, counts audience.Counts) {
	t.Helper()
	maker, err := audience.New(d.manifest(t), s)
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Concat(d.input, d.own)
	arrays := make([]arrow.Array, len(maker.Columns()))
	for i, name := range maker.Columns() {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		for _, row := range d.rows {
			if cell := row[slices.Index(names, name)]; cell == "" {
				b.AppendNull()
			} else {
				b.Append(cell)
			}
		}
		arrays[i] = b.NewArray()
	}
	people, counts := maker.People(arrays, len(d.rows))
	seen := audience.Seen{}
	for _, p := range people {
		if seen.Add(p) {
			lines = append(lines, strings.TrimSuffix(string(p.Line), "\n"))
			if p.Found {
				counts.Found++
			}
		}
	}
	return lines, counts
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Which digest of a row is its key, and which is unverified.
func TestKeys(t *testing.T) {
	const address, gmail = "ada@mail.example", "a.da+x@gmail.com"
	other := sha("somebody")
	hems := []string{"key", "hem_sha256", "hem_google_sha256"}
	plain, all := []email.Profile{email.Plain}, []email.Profile{email.Plain, email.Google, email.UID2}
	for _, c := range []struct {
		name       string
		data       data
		platform   string
		settings   audience.Settings
		want       string // the line; empty for nobody
		unverified int64
	}{
		{"an address", data{own: hems[:1], rows: [][]string{{address, address}}}, "meta", audience.Settings{}, sha(address), 0},
		{"the dataset's digest comes first", data{own: hems[:2], rows: [][]string{{address, address, other}}}, "meta", audience.Settings{}, other, 0},
		{"Google's digest, and the other forms", data{own: hems, rules: 7, rows: [][]string{{gmail, gmail, sha(gmail), other}}}, "google", audience.Settings{}, other + "," + sha("ada+x@gmail.com") + "," + sha(gmail), 0},
		{"Google's digest by its earlier rule", data{own: hems, rules: 3, rows: [][]string{{gmail, gmail, sha(gmail), other}}}, "google", audience.Settings{}, sha("ada@gmail.com") + "," + other + "," + sha(gmail), 0},
		{"a rejected row", data{own: hems[:1], rows: [][]string{{address, ""}}}, "meta", audience.Settings{}, "", 0},
		{"the one of several that was resolved", data{own: hems[:1], rows: [][]string{{"b@mail.example, " + address, address}}}, "meta", audience.Settings{}, sha(address), 0},

		{"a digest", data{rows: [][]string{{other}}}, "meta", audience.Settings{}, "", 1},
		{"a digest that may be written", data{rows: [][]string{{strings.ToUpper(other)}}}, "meta", audience.Settings{Unverified: true}, other, 0},
		{"a digest by the platform's rule", data{rows: [][]string{{other}}}, "meta", audience.Settings{Mails: plain}, other, 0},
		{"a digest by another rule", data{rows: [][]string{{other}}}, "google", audience.Settings{Mails: plain}, "", 1},
		{"a digest by Google's rule", data{rows: [][]string{{other}}}, "google", audience.Settings{Mails: all}, other + ",,", 0},
		{"no rule is Microsoft's", data{rows: [][]string{{other}}}, "microsoft", audience.Settings{Mails: all}, "", 1},
		{"a digest of another algorithm", data{rows: [][]string{{other[:32]}}}, "meta", audience.Settings{Unverified: true}, "", 0},
		{"a digest of nothing", data{rows: [][]string{{sha("")}}}, "meta", audience.Settings{Unverified: true}, "", 0},
		{"a digest of nothing in the dataset", data{own: hems[:2], rows: [][]string{{address, address, sha("")}}}, "meta", audience.Settings{}, sha(address), 0},

		{"a dataset of digests alone", data{own: hems[1:2], rows: [][]string{{"", other}}}, "meta", audience.Settings{}, "", 1},
		{"a dataset of digests of addresses", data{own: hems[1:], rows: [][]string{{"", other, sha("x")}}}, "meta", audience.Settings{}, other, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.data.operation, c.data.id, c.data.input = "email_to_hem", "email", []string{"email"}
			if c.data.rows[0][0] == "" { // it was dropped
				c.data.input = []string{"id"}
			}
			c.settings.Platform = platform.ByName(c.platform)
			lines, counts := c.data.people(t, c.settings)
			got := strings.Join(lines, "\n")
			if c.platform == "microsoft" && got != "" {
				got = got[strings.LastIndexByte(got, ',')+1:]
			}
			if got != c.want || counts.Unverified != c.unverified {
				t.Errorf("%q with %d unverified, want %q with %d", got, counts.Unverified, c.want, c.unverified)
			}
		})
	}
}

func digitsOf(text string) string {
	return strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, text)
}

func lettersOf(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, text)
}

// A digest in any spelling, in any column, is written as it is or not at all, and never hashed.
func TestNoDigestIsHashed(t *testing.T) {
	const n = 10_000
	d := data{operation: "email_to_hem", id: "email", input: []string{"email", "phone", "first", "last", "zip"}, own: []string{"key"}}
	digests, hashed := map[string]bool{}, map[string]bool{}
	for i := range n {
		text := fmt.Sprintf("person%d@mail.example", i)
		sum, sum1, sum5 := sha256.Sum256([]byte(text)), sha1.Sum([]byte(text)), md5.Sum([]byte(text))
		hexes := hex.EncodeToString(sum[:])
		spellings := []string{
			hexes, strings.ToUpper(hexes), " " + hexes + "\u00a0", "\ufeff" + hexes, "'" + hexes, `="` + hexes + `"`, hexes[:32] + strings.ToUpper(hexes[32:]),
			base64.StdEncoding.EncodeToString(sum[:]), base64.URLEncoding.EncodeToString(sum[:]), base64.RawStdEncoding.EncodeToString(sum[:]),
			base64.RawURLEncoding.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(sum1[:]), base64.StdEncoding.EncodeToString(sum5[:]),
			base64.RawStdEncoding.EncodeToString(sum5[:]), hexes + hexes, "0x" + hexes, "sha256:" + hexes, hex.EncodeToString(sum1[:]), strings.ToUpper(hex.EncodeToString(sum5[:])),
		}
		spelling := spellings[i%len(spellings)]
		digests[hexes] = true
		for _, form := range []string{spelling, strings.ToLower(spelling), strings.TrimSpace(spelling), hexes, strings.ToUpper(hexes), digitsOf(spelling), "+" + digitsOf(spelling), lettersOf(spelling)} {
			hashed[sha(form)] = true
		}
		row := []string{fmt.Sprintf("known%d@mail.example", i), "", "Ada", "Example", "94035", ""}
		row[i%5] = spelling
		if a, err := email.Parse([]byte(row[0])); err == nil {
			row[5] = string(a.AppendKey(nil))
		}
		d.rows = append(d.rows, row)
	}
	from := map[platform.Field]string{platform.Phone: "phone", platform.FirstName: "first", platform.LastName: "last", platform.ZipCode: "zip"}
	for i := range platform.All {
		p := &platform.All[i]
		s := audience.Settings{Platform: p, Country: "US", Unverified: true, From: map[platform.Field]string{}, Numbers: []phone.Form{phone.E164}}
		for field, column := range from {
			if slices.Contains(p.Takes(), field) && !(p.OneKind && field == platform.Phone) {
				s.From[field] = column
			}
		}
		lines, _ := d.people(t, s)
		passed, again := 0, 0
		for _, line := range lines {
			for cell := range strings.SplitSeq(line, ",") {
				if digests[cell] {
					passed++
				}
				if hashed[cell] || len(cell) > 64 || strings.ToLower(cell) != cell && len(cell) > 30 {
					again++
				}
			}
		}
		if again > 0 || passed < n/5/3 {
			t.Errorf("%s: of %d digests %d are hashed again, %d are written", p.Name, n, again, passed)
		}
	}
}

// What was found goes in only if it is asked for, behind what came with the list; names and address are of one
// of both.
func TestFound(t *testing.T) {
	sha256Hex, md5Hex := sha("ada@mail.example"), "b58996c504c5638798eb6b511e6f49af"
	leads := func(operation string, asks bool, row ...string) data {
		return data{operation: operation, asks: asks, id: "id", input: []string{"id", "first"}, own: []string{"key", "hem_sha256", "email", "phone", "first_name", "last_name", "zip_code"}, rows: [][]string{row}}
	}
	for _, c := range []struct {
		name  string
		data  data
		from  map[platform.Field]string
		found bool
		want  string
		n     int64 // people with something that was found
	}{
		{"an address", leads("enrichment", true, "x", "", "x", "", "ada@mail.example", "", "", "", ""), nil, true, sha256Hex + ",,,,79adb2a2fce5c6ba215fe5f27f532d4e7edbac4b6a5e09e1ef3a08084a904621,", 1},
		{"a digest", leads("enrichment", true, "x", "", "x", sha256Hex, "", "+16505551212", "", "", ""), nil, true,
			sha256Hex + "," + sha("16505551212") + ",,,79adb2a2fce5c6ba215fe5f27f532d4e7edbac4b6a5e09e1ef3a08084a904621,", 1},
		{"names of both", leads("enrichment", true, "x", "Eve", "x", sha256Hex, "", "", "Ada", "Example", "94035"), map[platform.Field]string{platform.FirstName: "first"}, true,
			sha256Hex + ",," + sha("eve") + ",79adb2a2fce5c6ba215fe5f27f532d4e7edbac4b6a5e09e1ef3a08084a904621", 1},
		{"the list's address first", leads("email_to_hem", true, "eve@mail.example", "", "eve@mail.example", sha256Hex, "", "", "", "", ""), nil, true, sha256Hex + ",,,,79adb2a2fce5c6ba215fe5f27f532d4e7edbac4b6a5e09e1ef3a08084a904621,", 0},
		{"an MD5 in the list, and its address was known", leads("email_to_hem", true, md5Hex, "", md5Hex, sha256Hex, "", "", "", "", ""), nil, true, sha256Hex + ",,,,79adb2a2fce5c6ba215fe5f27f532d4e7edbac4b6a5e09e1ef3a08084a904621,", 1},
		{"an MD5 in the list", leads("email_to_hem", true, md5Hex, "", md5Hex, sha256Hex, "", "", "", "", ""), nil, false, "", 0},
		{"a digest of the list is not found", leads("email_to_hem", true, sha256Hex, "", sha256Hex, sha256Hex, "", "", "", "", ""), nil, true, "", 0},
	} {
		s := audience.Settings{Platform: platform.ByName("meta"), Country: "US", Found: c.found, From: c.from}
		maker, err := audience.New(c.data.manifest(t), s)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		lines, found := c.data.people(t, s)
		if got := strings.Join(lines, "\n"); got != c.want || found.Found != c.n {
			t.Errorf("%s: %q with %d found, want %q with %d; columns %q", c.name, got, found.Found, c.want, c.n, maker.Header())
		}
	}
}

// A dataset's digests of a found phone are written in the columns of their forms.
func TestFoundPhones(t *testing.T) {
	e164, digits := sha("a"), sha("b")
	for _, c := range []struct {
		own, row []string
		want     string
	}{
		{[]string{"phone_e164_sha256", "phone_digits_sha256"}, []string{e164, digits}, e164 + "," + digits},
		{[]string{"phone_e164_sha256"}, []string{e164}, e164 + ","},
		{[]string{"phone", "phone_digits_sha256"}, []string{"+16505551212", digits}, sha("+16505551212") + "," + digits},
		{[]string{"phone", "phone_digits_sha256"}, []string{"+16505551212", ""}, sha("+16505551212") + "," + sha("16505551212")},
		{[]string{"phone", "phone_digits_sha256"}, []string{"", ""}, ""},
	} {
		d := data{operation: "enrichment", asks: true, id: "id", input: []string{"id"}, own: c.own, rows: [][]string{append([]string{"x"}, c.row...)}}
		if lines, _ := d.people(t, audience.Settings{Platform: platform.ByName("tiktok"), Found: true}); strings.Join(lines, "\n") != c.want {
			t.Errorf("%q of %q are %q, want %q", c.row, c.own, lines, c.want)
		}
	}
}

// A person is written once, whatever else the rows say.
func TestOnce(t *testing.T) {
	for _, c := range []struct {
		platform string
		rows     [][]string
		want     int
	}{
		{"meta", [][]string{{"a@x.example", ""}, {"A@x.example", "+16505551212"}, {"a+b@x.example", ""}}, 2},
		{"google", [][]string{{"a.b@gmail.com", ""}, {"ab+c@gmail.com", ""}, {"ab@googlemail.com", ""}}, 2},
		{"tiktok", [][]string{{"a@x.example", ""}, {"a+b@x.example", ""}, {"a@x.example", ""}}, 2},
		{"meta", [][]string{{"", "+16505551212"}, {"", "(650) 555-1212"}, {"a@x.example", "+16505551212"}, {"", "6505551212"}}, 2},
	} {
		d := data{operation: "email_to_hem", id: "email", input: []string{"email", "phone"}, rows: c.rows}
		lines, _ := d.people(t, audience.Settings{Platform: platform.ByName(c.platform), Country: "US", From: map[platform.Field]string{platform.Phone: "phone"}})
		if len(lines) != c.want {
			t.Errorf("%s: %q are %d people, want %d", c.platform, c.rows, len(lines), c.want)
		}
	}
}
