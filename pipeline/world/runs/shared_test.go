package runs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v17/parquet/compress"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution/directory"
)

// prepare makes what all worlds share, which must belong to none: channels of a codec, and files.
func prepare() {
	people()
	warmUp()
}

var warmUp = sync.OnceFunc(func() {
	for _, name := range []compress.Compression{compress.Codecs.Zstd, compress.Codecs.Snappy} {
		codec, err := compress.GetCodec(name)
		if err != nil {
			panic(err)
		}
		codec.Decode(nil, codec.Encode(nil, []byte("text")))
	}
})

// people is reference data, which no machine changes.
var people = sync.OnceValue(func() *directory.Directory {
	return inFolder(func(dir string) (*directory.Directory, error) {
		var list strings.Builder
		list.WriteString("network_url,first_name,job_title,email,phones\n")
		for i := range 12 {
			fmt.Fprintf(&list, "network.example/in/person%d,Ada,engineer %d,ada%d@directory.example,+1202555%04d\n", 2*i, i, i, i)
		}
		from := filepath.Join(dir, "people.csv")
		into := filepath.Join(dir, "directory")
		if err := os.WriteFile(from, []byte(list.String()), 0o600); err != nil {
			return nil, err
		}
		if _, err := directory.Import(context.Background(), into, directory.Files{People: from}, directory.DefaultOptions()); err != nil {
			return nil, err
		}
		return directory.Open(into)
	})
})

// inFolder makes something in a folder, which is then removed.
func inFolder[T any](do func(dir string) (T, error)) T {
	dir, err := os.MkdirTemp(worldtest.Memory(), "leadetl-world-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	made, err := do(dir)
	if err != nil {
		panic(err)
	}
	return made
}
