package sources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
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
		"s3://lists/a.csv":      `s3://lists/a.csv has no column "email"; it has: id. Choose with --column and --keep`,
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
	server, _, o := onS3(t, map[string]string{"a.csv": text, "b.csv": "id,email\n1,x\n", "c.csv": "id,email\n1,x\n"})
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
