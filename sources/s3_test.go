package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// onS3 starts a store and puts objects into the bucket lists.
func onS3(t *testing.T, texts map[string]string) (*s3test.Server, *s3test.Proxy, Options) {
	t.Helper()
	server := s3test.Start(t, "lists")
	s3test.Setenv(t)
	proxy := s3test.NewProxy(t, server) // at its end no connection is left
	store := objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true})
	for key, text := range texts {
		if _, err := store.Put(t.Context(), objects.Location{Bucket: "lists", Key: key}, objects.ContentOf([]byte(text), "")); err != nil {
			t.Fatal(err)
		}
	}
	return server, proxy, Options{Objects: store}
}

func TestRowsOnS3(t *testing.T) {
	texts := map[string]string{
		"a.csv": "id,email\n1,x\n2,y\n", "b.csv.gz": gz("email;id\nz;3\n"), "c/d.csv.zst": zst("id,email\n4,w\n"), "c/_SUCCESS": "", "c/e f+%20.csv": "email\nv\n",
	}
	var many []string
	for i := range 100 {
		texts[fmt.Sprintf("many/%03d.csv", i)] = fmt.Sprintf("email\nx%d\n", i)
		many = append(many, fmt.Sprintf("s3://lists/many/%03d.csv:1 x%d", i, i))
	}
	_, proxy, o := onS3(t, texts)
	folder(t, map[string]string{"here.csv": "email\nhere\n"})
	requests := 0
	proxy.Do(func(r *http.Request) s3test.Fault {
		if requests++; requests%7 == 0 {
			return s3test.Fault{Kind: s3test.Cut}
		}
		return s3test.Fault{}
	})
	for _, c := range []struct {
		uris []string
		want []string
	}{
		{[]string{"s3://lists/a.csv"}, []string{"s3://lists/a.csv:1 x", "s3://lists/a.csv:2 y"}},
		{[]string{"s3://lists/c/", "here.csv", "S3://lists/?.csv.gz"},
			[]string{"here.csv:1 here", "s3://lists/b.csv.gz:1 z", "s3://lists/c/d.csv.zst:1 w", "s3://lists/c/e f+%20.csv:1 v"}},
		{[]string{"s3://lists/many/**"}, many},
	} {
		got, err := rowsOf(c.uris, []string{"email"}, o)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q:\n got %q, %v\nwant %q", c.uris, got, err, c.want)
		}
	}
}

func TestRefusedOnS3(t *testing.T) {
	_, _, o := onS3(t, map[string]string{"a.csv": "id\n1\n", "empty.csv": "", "cut.csv.gz": gz("id\n1\n")[:20]})
	for uri, want := range map[string]string{
		"s3://lists/none.csv":   "s3://lists/none.csv does not exist. Check the names of object and bucket; a prefix ends in a slash",
		"s3://lists/none/":      "s3://lists/none/ matches no object. Check the bucket and the pattern; put it in quotes if the shell changes it",
		"s3://lists/empty.csv":  "s3://lists/empty.csv is empty: it has no header line. Write the names of the columns in its first line",
		"s3://lists/cut.csv.gz": "s3://lists/cut.csv.gz is truncated: its compressed data ends too early. Copy or compress it again",
		"s3://lists/a.csv":      `s3://lists/a.csv has no column "email"; it has: id. Choose with --id-column, --select and --where`,
	} {
		_, err := rowsOf([]string{uri}, []string{"email"}, o)
		if format := new(FormatError); !errors.As(err, &format) || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", uri, err, want)
		}
	}
	if _, err := rowsOf([]string{"s3://lists/a.csv", "s3://lists/*.csv"}, nil, o); err == nil || !strings.HasPrefix(err.Error(), "s3://lists/a.csv is given twice") {
		t.Errorf("an object twice: %v", err)
	}
}

// An object that is replaced before or while it is read is named, whatever the
// change makes of the rows; and a Reader that is closed leaves nothing behind.
func TestChangedOnS3(t *testing.T) {
	text := "id,email\n" + strings.Repeat("1,someone@mail.example\n", 1_500_000) // several chunks
	server, _, o := onS3(t, map[string]string{"a.csv": text, "b.csv": "id,email\n1,x\n", "c.csv": text[:wholeText+1]})
	for _, name := range []string{"a.csv", "c.csv"} {
		l, err := Open(t.Context(), []string{"s3://lists/*.csv"}, o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Reader([]string{"email"})
		if err != nil {
			t.Fatal(err)
		}
		if name == "a.csv" {
			b, err := r.Next(context.Background(), 10)
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		path := filepath.Join(server.Dir, "lists", name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Objects.Put(t.Context(), objects.Location{Bucket: "lists", Key: name}, objects.ContentOf([]byte("id,email\n2,y\n"), "")); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			var b *Batch
			if b, err = r.Next(context.Background(), 0); err == nil {
				b.Release()
			}
		}
		if !errors.Is(err, ErrChanged) || !strings.HasPrefix(err.Error(), "s3://lists/"+name+": file changed while it was read") {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// onFake puts objects into a store in memory, whose answers a test can spoil, and
// returns the log of the client.
func onFake(t *testing.T, objectsOf map[string]string) (*s3test.Fake, Options, *bytes.Buffer) {
	t.Helper()
	s3test.Setenv(t)
	store, log := s3test.NewFake(t, objectsOf), new(bytes.Buffer)
	client := objects.New(t.Context(), objects.Options{Endpoint: store.URL, PathStyle: true, GiveUpAfter: time.Second, Log: slog.New(slog.NewTextHandler(log, nil))})
	return store, Options{Objects: client}, log
}

// Rows are those of the object, whatever range the store sends and whatever size it
// lists, or an error says what it sent.
func TestRowsOfOddStores(t *testing.T) {
	const rows = 190_000 // in two chunks
	var text strings.Builder
	text.WriteString("id,email\n")
	type row struct {
		Email string `parquet:"email"`
	}
	var table []row
	for i := range rows {
		email := fmt.Sprintf("person%d@mail.example", i)
		fmt.Fprintf(&text, "%d,%s\n", i, email)
		table = append(table, row{email})
	}
	var file bytes.Buffer
	if err := parquet.Write(&file, table); err != nil {
		t.Fatal(err)
	}
	store, o, _ := onFake(t, map[string]string{"lists/csv/a.csv": text.String(), "lists/gz/a.csv.gz": gz(text.String()), "lists/parquet/a.parquet": file.String()})
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, []byte) bool
		listed func(string, int) int
		want   string // in the error; "" if all rows are read
	}{
		{"as asked", nil, nil, ""},
		{"all of it", s3test.Whole, nil, ""},
		{"another range", s3test.Shifted, nil, "; asked for were bytes "},
		{"listed smaller", nil, func(_ string, n int) int { return n / 3 }, ""},
		{"listed larger", nil, func(_ string, n int) int { return n + 64 }, ""},
		{"listed smaller, all of it", s3test.Whole, func(_ string, n int) int { return n / 3 }, ""},
	} {
		store.Do(c.answer)
		store.List(c.listed)
		for _, uri := range []string{"s3://lists/csv/", "s3://lists/gz/*", "s3://lists/parquet/a.parquet"} {
			if c.want != "" && uri == "s3://lists/gz/*" {
				continue // a single answer has it all
			}
			got, err := rowsOf([]string{uri}, []string{"email"}, o)
			refused := new(objects.RefusedError)
			switch {
			case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: %s: %v, want %s", c.name, uri, err, c.want)
			case c.want == "" && (err != nil || len(got) != rows || !strings.HasSuffix(got[rows-1], fmt.Sprintf(":%d person%d@mail.example", rows, rows-1))):
				t.Errorf("%s: %s: %d rows, %v, want %d", c.name, uri, len(got), err, rows)
			}
		}
	}
}

// A list that is not there is looked for at the right store.
func TestMissingNamesEndpoint(t *testing.T) {
	s3test.Setenv(t)
	store := s3test.NewFake(t, nil)
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	o := Options{Objects: objects.New(t.Context(), objects.Options{PathStyle: true, GiveUpAfter: time.Second})}
	for uri, want := range map[string]string{
		"s3://lists/none.csv": "s3://lists/none.csv does not exist. Check the names of object and bucket, and the endpoint ENDPOINT from AWS_ENDPOINT_URL; a prefix ends in a slash",
		"s3://lists/none/":    "s3://lists/none/ matches no object. Check the bucket and the pattern, and the endpoint ENDPOINT from AWS_ENDPOINT_URL; put it in quotes if the shell changes it",
	} {
		want = strings.ReplaceAll(want, "ENDPOINT ", store.URL+" ")
		if _, err := rowsOf([]string{uri}, nil, o); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// Objects that mark folders are no lists. Other empty objects are named.
func TestEmptyObjects(t *testing.T) {
	store, o, log := onFake(t, map[string]string{
		"lists/in/": "", "lists/in/a.csv": "email\nx\n", "lists/in/sub": "", "lists/in/sub/b.csv": "email\ny\n", "lists/in/old_$folder$": "", "lists/in/empty.csv": "",
		"lists/none/a": "", "lists/none/b.csv": "", "lists/marks/a": "", "lists/marks/a/_b": "x\n", "lists/full/sub": "email\nz\n", "lists/full/sub/b.csv": "email\ny\n",
	})
	for _, c := range []struct {
		name   string
		uri    string
		listed func(string, int) int
		o      func(*Options)
		want   string // the rows, or the error
		log    string // the lists that it names
	}{
		{"a prefix", "s3://lists/in/", nil, nil, "s3://lists/in/a.csv:1 x s3://lists/in/sub/b.csv:1 y", "s3://lists/in/empty.csv"},
		{"a pattern", "s3://lists/in/**", nil, nil, "s3://lists/in/a.csv:1 x s3://lists/in/sub/b.csv:1 y", "s3://lists/in/empty.csv"},
		{"listed with bytes", "s3://lists/in/s**", func(string, int) int { return 32 }, nil, "s3://lists/in/sub/b.csv:1 y", ""},
		{"a list that was listed with bytes", "s3://lists/in/", func(string, int) int { return 32 }, nil,
			"s3://lists/in/empty.csv is empty, but the store lists it with 32 bytes. Copy it to the store again, or leave it out", ""},
		{"a list that was listed without", "s3://lists/full/", func(string, int) int { return 0 }, nil, "s3://lists/full/sub:1 z s3://lists/full/sub/b.csv:1 y", ""},
		{"only empty ones", "s3://lists/none/", nil, nil, "s3://lists/none/a is empty: it has no header line. Write the names of the columns in its first line", ""},
		{"only empty ones, allowed", "s3://lists/none/", nil, func(o *Options) { o.AllowEmpty = true }, "", "s3://lists/none/a s3://lists/none/b.csv"},
		{"only marks", "s3://lists/marks/*", nil, nil, "s3://lists/marks/a only marks a folder, and no list was found. Check the prefix or the pattern", ""},
		{"named itself", "s3://lists/in/sub", nil, nil, "s3://lists/in/sub is empty: it has no header line. Write the names of the columns in its first line", ""},
	} {
		store.List(c.listed)
		log.Reset()
		o := o
		var columns []string
		if c.o == nil {
			columns = []string{"email"}
		} else {
			c.o(&o)
		}
		rows, err := rowsOf([]string{c.uri}, columns, o)
		if got := strings.Join(rows, " "); got != c.want && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %s, %v\nwant %s", c.name, got, err, c.want)
		}
		var named []string
		for _, line := range strings.SplitAfter(log.String(), "\n") {
			if _, list, found := strings.Cut(strings.TrimSpace(line), `level=WARN msg="the list is empty: no row is read from it" list=`); found {
				named = append(named, list)
			} else if line != "" {
				t.Errorf("%s: it says %s", c.name, line)
			}
		}
		if got := strings.Join(named, " "); got != c.log {
			t.Errorf("%s: it names %s, want %s", c.name, got, c.log)
		}
	}
}

// Small inputs are read once, when they are inspected, and are what they were then.
func TestSmallInputsAreReadOnce(t *testing.T) {
	list := func(n int) string { return fmt.Sprintf("id,email\n1,person%d@mail.example\n", n) }
	store, o, _ := onFake(t, map[string]string{"lists/a.csv": list(1), "lists/b.csv.gz": gz(list(2)), "lists/c.jsonl": `{"email":"person3@mail.example"}`})
	l, err := Open(t.Context(), []string{"s3://lists/"}, o)
	if err != nil {
		t.Fatal(err)
	}
	store.Do(func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		t.Error("the store is asked again")
		return false
	})
	for range 2 {
		r, err := l.Reader([]string{"email"})
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; ; n++ {
			b, err := r.Next(t.Context(), 0)
			if err == io.EOF {
				if n != 4 {
					t.Errorf("%d files are read, want 3", n-1)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := b.Columns[0].Value(0), fmt.Sprintf("person%d@mail.example", n); got != want {
				t.Errorf("file %d has %q, want %q", n, got, want)
			}
			b.Release()
		}
	}
}
