package tabular

import (
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestDiskErrors: errors of the disk are not blamed on the content.
func TestDiskErrors(t *testing.T) {
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("domain\na.example\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	disk := errors.New("disk")
	want := Columns{Names: []string{"domain"}, Required: []string{"domain"}}
	for _, text := range []string{"", "domain\n", "domain\na.example\n", "domain\n" + strings.Repeat("a.example\n", 1<<14),
		packed.String()[:12]} {
		err := readCSV(io.MultiReader(strings.NewReader(text), iotest.ErrReader(disk)), want, func(Row) error { return nil })
		var content *FileError
		if !errors.Is(err, disk) || errors.As(err, &content) {
			t.Errorf("after %d bytes: %v", len(text), err)
		}
	}
}
