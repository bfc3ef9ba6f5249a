package objects_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ uri, want, folder, err string }{
		{"s3://bkt/k", "s3://bkt/k", "s3://bkt/k/", ""},
		{"S3://bkt/k/", "s3://bkt/k/", "s3://bkt/k/", ""},
		{"s3://bkt/a//b c%20.csv", "s3://bkt/a//b c%20.csv", "s3://bkt/a//b c%20.csv/", ""},
		{"s3://bkt", "s3://bkt/", "s3://bkt/", ""},
		{"s3://bkt//", "s3://bkt//", "s3://bkt/", ""},
		{"s3://", "", "", "s3://: has no bucket; write s3://bucket/key"},
		{"s3:///k", "", "", "s3:///k: has no bucket; write s3://bucket/key"},
		{"s3://*/k", "", "", "s3://*/k: a bucket name cannot be a pattern; name each bucket"},
		{"s3://BAD_Bucket!/k", "", "", "s3://BAD_Bucket!/k: BAD_Bucket! cannot be the name of a bucket; bucket names are 3 to 63 lower-case letters, digits, dots and hyphens"},
		{"s3://b/k", "", "", "s3://b/k: b cannot be the name of a bucket; bucket names are 3 to 63 lower-case letters, digits, dots and hyphens"},
		{"a.csv", "", "", "a.csv: not an S3 address; write s3://bucket/key"},
	} {
		got, err := objects.Parse(c.uri)
		folder, folderErr := objects.ParseFolder(c.uri)
		if c.err != "" {
			if err == nil || err.Error() != c.err || folderErr == nil || folderErr.Error() != c.err {
				t.Errorf("%s: %v, %v, want %s", c.uri, err, folderErr, c.err)
			}
			continue
		}
		if err != nil || folderErr != nil || got.String() != c.want || folder.String() != c.folder {
			t.Errorf("%s: %s, %v and %s, %v; want %s and %s", c.uri, got, err, folder, folderErr, c.want, c.folder)
		}
	}
}

func TestFind(t *testing.T) {
	server, _, store := stores(t)
	for _, key := range []string{
		"lists/a.csv", "lists/b.txt", "lists/deep/c.csv", "lists/deep/er/d.csv", "lists/_SUCCESS", "lists/_rejects/e.csv", "lists/.hidden.csv", "lists/[odd].csv", "other.csv",
	} {
		name := filepath.Join(server.Dir, bucket, key)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("id\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		uri  string
		want []string
	}{
		{"s3://lists/lists/a.csv", []string{"lists/a.csv"}},
		{"s3://lists/lists/none.csv", []string{"lists/none.csv"}}, // opening it will say
		{"s3://lists/lists/", []string{"lists/[odd].csv", "lists/a.csv", "lists/b.txt", "lists/deep/c.csv", "lists/deep/er/d.csv"}},
		{"s3://lists/lists/*.csv", []string{"lists/.hidden.csv", "lists/[odd].csv", "lists/a.csv"}},
		{"s3://lists/lists/**.csv", []string{"lists/.hidden.csv", "lists/[odd].csv", "lists/_rejects/e.csv", "lists/a.csv", "lists/deep/c.csv", "lists/deep/er/d.csv"}},
		{"s3://lists/**/[cd].csv", []string{"lists/deep/c.csv", "lists/deep/er/d.csv"}},
		{"s3://lists/lists/[odd].csv", []string{"lists/[odd].csv"}},
		{"s3://lists/none/*", nil},
	} {
		found, err := store.Find(t.Context(), c.uri)
		var got []string
		for _, o := range found {
			got = append(got, o.Key)
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.uri, got, err, c.want)
		}
	}
}

// A listing continues over its pages.
func TestListPages(t *testing.T) {
	server, proxy, store := stores(t)
	const n = 2345
	folder := filepath.Join(server.Dir, bucket, "many")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range n {
		name := fmt.Sprintf("%05d.csv", i)
		want = append(want, "many/"+name)
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := proxy.Seen()
	var got []string
	for o, err := range store.List(t.Context(), at("many/")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d objects, want %d", len(got), n)
	}
	if pages := proxy.Seen() - before; pages != 3 {
		t.Errorf("%d requests", pages)
	}
	files, folders, err := store.ListFolder(t.Context(), at(""))
	if err != nil || len(files) != 0 || !slices.Equal(folders, []string{"many/"}) {
		t.Errorf("%v, %q, %v", files, folders, err)
	}
}

// A listing that would never end, or that lists something else, is an error. Keys
// that mark folders are left out, and those that may are known.
func TestOddListings(t *testing.T) {
	contents := func(keys ...string) (text string) {
		for _, key := range keys {
			text += "<Contents><Key>" + key + "</Key><Size>0</Size><ETag>&quot;e&quot;</ETag></Contents>"
		}
		return text
	}
	truncated := func(token string) string {
		return "<IsTruncated>true</IsTruncated><NextContinuationToken>" + token + "</NextContinuationToken>"
	}
	for _, c := range []struct {
		name  string
		pages map[string]string // by the token that asks for them
		want  string            // the keys, or the end of the error
	}{
		{"two pages", map[string]string{"": contents("in/a") + truncated("1"), "1": contents("in/b")}, "in/a in/b"},
		{"the same token", map[string]string{"": contents("in/a") + truncated("1"), "1": contents("in/b") + truncated("1")},
			"s3://lists/in/: the listing repeats itself: the store sent the same continuation token twice (bucket lists, region us-east-1, endpoint ENDPOINT); check the store, and what is in front of it, such as a proxy or a cache"},
		{"a circle", map[string]string{"": truncated("1"), "1": contents("in/b") + truncated("2"), "2": truncated("1")}, "such as a proxy or a cache"},
		{"no token", map[string]string{"": contents("in/a") + "<IsTruncated>true</IsTruncated>"}, "such as a proxy or a cache"},
		{"a shorter key", map[string]string{"": contents("in")}, "such as a proxy or a cache"},
		{"another key", map[string]string{"": contents("in/a", "other/b")}, "such as a proxy or a cache"},
		{"markers", map[string]string{"": contents("in/", "in/a", "in/sub", "in/sub-x", "in/sub/", "in/sub/b", "in/sub_$folder$", "in/z", "in/z_$folder$/c")}, "in/a in/sub/… in/sub-x in/sub/b in/z in/z_$folder$/c"},
		{"a marker without keys below", map[string]string{"": contents("in/sub", "in/sub_$folder$")}, "in/sub"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s3test.Setenv(t)
			asked := 0
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked > 9 {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", "application/xml")
				fmt.Fprintf(w, "<ListBucketResult>%s</ListBucketResult>", c.pages[r.URL.Query().Get("continuation-token")])
			}))
			defer store.Close()
			client := objects.New(t.Context(), objects.Options{Endpoint: store.URL, PathStyle: true, GiveUpAfter: time.Second})
			found, err := client.Find(t.Context(), "s3://lists/in/")
			var got []string
			for _, o := range found {
				key := o.Key
				if o.IsFolder {
					key += "/…"
				}
				got = append(got, key)
			}
			if text := strings.Join(got, " "); text != c.want && (err == nil || !strings.HasSuffix(err.Error(), strings.ReplaceAll(c.want, "ENDPOINT", store.URL))) {
				t.Errorf("got  %s, %v\nwant %s", text, err, c.want)
			}
		})
	}
}
