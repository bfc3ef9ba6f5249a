// Package wholefile reads small files whole, such as settings, keys and
// certificates. A name may be that of a pipe or a device, so what is read is
// bounded, and a read that waits ends with its context.
package wholefile

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Kind is a kind of file.
type Kind struct {
	Name  string                                 // with an article, such as "a key"
	Bytes int64                                  // the most that a file of the kind has
	Check func(name string, i fs.FileInfo) error // refuses an open file; nil refuses none
}

// Read reads a file. Its error names the file. If ctx ends first, it returns an
// error that wraps that of ctx: the read continues, which is fine in a process that
// is about to end.
func (k Kind) Read(ctx context.Context, name string) ([]byte, error) {
	var content []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		content, err = k.read(name)
	}()
	select {
	case <-done:
		return content, err
	case <-ctx.Done():
		return nil, interruptedError{name, ctx.Err()}
	}
}

func (k Kind) read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Stat the open file: the name may belong to another file by now.
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if k.Check != nil {
		if err := k.Check(name, info); err != nil {
			return nil, err
		}
	}
	content, err := io.ReadAll(io.LimitReader(f, k.Bytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > k.Bytes {
		return nil, fmt.Errorf("%s is too large for %s, which has at most %d KiB; check its name", name, k.Name, k.Bytes>>10)
	}
	return content, nil
}

// interruptedError says which file was read when the context ended.
type interruptedError struct {
	name  string
	cause error
}

func (e interruptedError) Error() string { return "interrupted while " + e.name + " was read" }
func (e interruptedError) Unwrap() error { return e.cause }
