package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/phone"
)

// What comes of the input's columns: the kept ones of the first row, by name.
func TestInputColumns(t *testing.T) {
	all := func(*job.Job) {}
	keep := func(names ...string) func(*job.Job) {
		return func(j *job.Job) { j.Select = append(names, "answers") }
	}
	for _, c := range []struct {
		name  string
		files []string // headers; the cells are the names of their columns
		job   func(*job.Job)
		want  string // kept columns and cells of each row; "!" and a part of the error
	}{
		{"all", []string{"id,email"}, all, `"id": "id", "email": "email"`},
		{"none", []string{"id,email"}, keep(), ``},
		{"some", []string{"id,email,note"}, keep("note", "id"), `"note": "note", "id": "id"`},
		{"the identifier alone", []string{"id,email"}, keep("email"), `"email": "email"`},
		{"in another case", []string{"ID,EMail"}, all, `"ID": "ID", "EMail": "EMail"`},
		{"kept in another case", []string{"Id,Email"}, keep("ID"), `"ID": "Id"`},
		{"another identifier", []string{"id,Contact"}, func(j *job.Job) { j.IDColumn = "contact" }, `"id": "id", "Contact": "Contact"`},
		{"dropped", []string{"id,Email"}, func(j *job.Job) { j.DropIdentifier = true }, `"id": "id"`},
		{"dropped, kept by name", []string{"id,Email"}, func(j *job.Job) { keep("EMAIL", "id")(j); j.DropIdentifier = true }, `!--select names "EMAIL", which --drop-identifier leaves out`},
		{"collision", []string{"key,email,SOURCE"}, all, `"in_key": "key", "email": "email", "in_SOURCE": "SOURCE"`},
		{"files in another order", []string{"id,email", "email,id"}, all, `"id": "id", "email": "email"`},
		{"files in another case", []string{"id,email", "Id,EMAIL"}, all, `"id": "id", "email": "email"|"id": "Id", "email": "EMAIL"`},
		{"a column more in the second", []string{"id,email", "id,email,note"}, all, `!"note"`},
		{"a column more, not kept", []string{"id,email", "id,email,note"}, keep("id"), `"id": "id"`},
		{"a column fewer in the second", []string{"id,email,note", "id,email"}, all, `!note`},
		{"no identifier", []string{"id,mail"}, all, `!email`},
		{"no kept column", []string{"id,email"}, keep("note"), `!note`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setup{dir: t.TempDir(), job: c.job}
			for i, header := range c.files {
				s.input(t, fmt.Sprintf("%d.csv", i), header+"\n"+header+"\n")
			}
			if part, refused := strings.CutPrefix(c.want, "!"); refused {
				if _, err := s.do(t.Context()); err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v, want an error with %s", err, part)
				}
				return
			}
			s.mustDo(t)
			wants := strings.Split(c.want, "|")
			for i, row := range rows(t, content(t, s.outDir())) {
				kept, _, _ := strings.Cut(strings.TrimPrefix(row, "{"), `"source": `)
				if want := wants[i%len(wants)]; strings.TrimSuffix(kept, ", ") != want {
					t.Errorf("row %d: %s, want %s", i, kept, want)
				}
			}
		})
	}
}

// A null of a Parquet input stays one where it is kept, and is no identifier.
func TestNulls(t *testing.T) {
	s := setup{dir: t.TempDir()}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "email", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil))
	for column, cells := range [][]string{{"a@mail.example", "", "c@mail.example", ""}, {"", "note", "", "null"}} {
		for _, cell := range cells {
			if cell == "" {
				b.Field(column).AppendNull()
			} else {
				b.Field(column).(*array.StringBuilder).Append(cell)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(s.dir, "in", "a.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	rec := b.NewRecord()
	table := array.NewTableFromRecords(rec.Schema(), []arrow.Record{rec})
	if err := pqarrow.WriteTable(table, f, 100, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps()); err != nil {
		t.Fatal(err)
	}
	s.mustDo(t)
	var got []string
	for _, row := range rows(t, content(t, s.outDir())) {
		kept, _, _ := strings.Cut(row, `"source": `)
		got = append(got, kept+field(t, row, "outcome")+" "+field(t, row, "reason"))
	}
	want := []string{`{"email": "a@mail.example", matched `, `{"note": "note", rejected empty`, `{"email": "c@mail.example", matched `, `{"note": "null", rejected empty`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestJobProblems(t *testing.T) {
	for want, change := range map[string]func(*job.Job){
		"":                       func(*job.Job) {},
		`operation "nonsense"`:   func(j *job.Job) { j.Operation = "nonsense" },
		"for keyword operations": func(j *job.Job) { j.AsOf = time.Now() },
		"rows per part is 0":     func(j *job.Job) { j.RowsPerPart = 0 },
		`compression "gzip"`:     func(j *job.Job) { j.Compression = sinks.Compression("gzip") },
		"no HEM type is given":   func(j *job.Job) { j.HEMTypes = nil },
		`HEM type "sha512"`:      func(j *job.Job) { j.HEMTypes = []string{"md5", "sha512"} },
		"HEM profiles":           func(j *job.Job) { j.Operation, j.HEMProfiles = resolution.Enrichment, []email.Profile{email.UID2} },
		"phone_profiles are":     func(j *job.Job) { j.PhoneProfiles = []phone.Form{phone.E164} },
		`default_region "us"`:    func(j *job.Job) { j.DefaultRegion = "us" },
		"no network host":        func(j *job.Job) { j.NetworkHosts = nil },
	} {
		job := job.Default(resolution.EmailToHEM)
		change(&job)
		switch err := job.Validate(); {
		case want == "" && err != nil:
			t.Errorf("a default job: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
}
