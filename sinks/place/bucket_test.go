package place

import (
	"errors"
	"testing"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
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
