package place

import (
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// A part is compared by its bytes, where the store lists another size of it.
func TestCheckListedOtherwise(t *testing.T) {
	s3test.Setenv(t)
	store := s3test.NewFake(t, nil)
	client := objects.New(t.Context(), objects.Options{Endpoint: store.URL, PathStyle: true})
	content := objects.ContentOf([]byte("rows"), "")
	info, err := client.Put(t.Context(), objects.Location{Bucket: "leads", Key: "out/part-00000.parquet"}, content)
	if err != nil {
		t.Fatal(err)
	}
	right := File{Name: "part-00000.parquet", Bytes: 4, SHA256: info.SHA256, ETag: info.ETag}
	smaller, another := right, right
	smaller.Bytes, another.ETag, another.SHA256 = 3, "", "00"
	for name, listed := range map[string]func(string, int) int{
		"right": nil, "smaller": func(string, int) int { return 1 }, "larger": func(string, int) int { return 68 },
	} {
		store.List(listed)
		p, err := OpenToRead(t.Context(), "s3://leads/out/", Options{Objects: client})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			file File
			want error
		}{{right, nil}, {smaller, ErrCorrupt}, {another, ErrCorrupt}} {
			if err := p.Check(c.file); !errors.Is(err, c.want) {
				t.Errorf("%s: %d bytes: %v, want %v", name, c.file.Bytes, err, c.want)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLateFiles: what a manifest names is awaited, and so is the manifest of a finished dataset.
func TestLateFiles(t *testing.T) {
	for name, read := range map[string]func(*Place) error{
		"part-00000.parquet": func(p *Place) error { return p.Check(File{Name: "part-00000.parquet", Bytes: 4, SHA256: "00"}) },
		"part-00001.parquet": func(p *Place) error { _, err := p.Open("part-00001.parquet"); return err },
		ManifestName:         func(p *Place) error { _, err := p.Read(ManifestName); return err },
	} {
		t.Run(name, func(t *testing.T) {
			store := s3test.NewLate(t)
			synctest.Test(t, func(t *testing.T) {
				client := store.Client(t, 0, 0)
				for _, name := range []string{"part-00000.parquet", "part-00001.parquet", ManifestName, SuccessName} {
					if _, err := client.Put(t.Context(), objects.Location{Bucket: "leads", Key: "out/" + name}, objects.ContentOf([]byte("rows"), "")); err != nil {
						t.Fatal(err)
					}
				}
				store.Hides, store.Lacks = "/out/"+name, "/out/"+name
				for _, c := range []struct {
					shown time.Duration // after which it is
					takes time.Duration // at least
				}{{20 * time.Second, 20 * time.Second}, {time.Hour, time.Minute}} {
					p, err := OpenToRead(t.Context(), "s3://leads/out/", Options{Objects: store.Client(t, 0, 0)})
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					store.Until = began.Add(c.shown)
					err = read(p)
					late, is := errors.AsType[*LateError](err)
					if is != (c.shown == time.Hour) || is && (late.Name != name || !errors.Is(err, objects.ErrLate) || !errors.Is(err, ErrCorrupt)) {
						t.Errorf("shown after %s: %v", c.shown, err)
					}
					if took := time.Since(began); took < c.takes || took > time.Minute+time.Second {
						t.Errorf("shown after %s: it took %s", c.shown, took)
					}
					if err := p.Close(); err != nil {
						t.Error(err)
					}
				}
				store.Hides, store.Lacks = "/out/_", ""
				p, err := OpenToRead(t.Context(), "s3://leads/out/", Options{Objects: client})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if _, err := p.Read(ManifestName); !errors.Is(err, fs.ErrNotExist) || time.Since(began) > 0 {
					t.Errorf("the manifest of an unfinished dataset: %v after %s", err, time.Since(began))
				}
			})
		})
	}
}
