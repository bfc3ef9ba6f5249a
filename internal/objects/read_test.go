package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

func bytesOf(n int) []byte {
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{2}).Read(data)
	return data
}

func upload(t *testing.T, store *objects.Store, key string, data []byte) {
	t.Helper()
	if _, err := store.Put(t.Context(), at(key), objects.ContentOf(data, "")); err != nil {
		t.Fatal(err)
	}
}

// What is read is what is there, however often connections break.
func TestRead(t *testing.T) {
	_, proxy, store := stores(t)
	for _, size := range []int{0, 1, objects.BlockSize, objects.BlockSize + 1, objects.ChunkSize - 1, 3*objects.ChunkSize + 5} {
		data := bytesOf(size)
		upload(t, store, fmt.Sprint(size), data)
		for _, kind := range []s3test.Kind{s3test.Pass, s3test.Cut, s3test.Reset, s3test.Lose} {
			requests := 0
			proxy.Do(func(r *http.Request) s3test.Fault {
				if requests++; requests%3 == 1 {
					return s3test.Fault{Kind: kind}
				}
				return s3test.Fault{}
			})
			o, err := store.Open(t.Context(), objects.Info{Location: at(fmt.Sprint(size))})
			if err != nil {
				t.Fatal(err)
			}
			if o.Size != int64(size) {
				t.Errorf("%d bytes, %s: size %d", size, kind, o.Size)
			}
			stream := o.Stream()
			got, err := io.ReadAll(stream)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes, %s: streamed %d, %v", size, kind, len(got), err)
			}
			for _, from := range []int{0, 1, objects.BlockSize - 3, size / 2, size - 5, size} {
				if from < 0 || from > size {
					continue
				}
				p := make([]byte, 11)
				n, err := o.ReadAt(p, int64(from))
				want := data[from:min(from+11, size)]
				if !bytes.Equal(p[:n], want) || (err == io.EOF) != (len(want) < len(p)) || err != nil && err != io.EOF {
					t.Errorf("%d bytes, %s: at %d %d bytes, %v, want %d", size, kind, from, n, err, len(want))
				}
			}
			if err := errors.Join(stream.Close(), o.Close()); err != nil {
				t.Error(err)
			}
		}
		proxy.Do(nil)
	}
}

// An object that is replaced while it is read is an error, not a mixture.
func TestReadChanged(t *testing.T) {
	server, _, store := stores(t)
	data := bytesOf(8 * objects.ChunkSize)
	upload(t, store, "a", data)
	for name, change := range map[string]func() error{
		"replaced": func() error {
			_, err := store.Put(t.Context(), at("a"), objects.ContentOf(bytes.Repeat([]byte("b"), len(data)), ""))
			return err
		},
		"removed": func() error { return os.Remove(filepath.Join(server.Dir, bucket, "a")) },
	} {
		o, err := store.Open(t.Context(), objects.Info{Location: at("a")})
		if err != nil {
			t.Fatal(err)
		}
		stream := o.Stream()
		if _, err := io.ReadFull(stream, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, stream); !errors.Is(err, objects.ErrChanged) {
			t.Errorf("%s: %d bytes, %v, want %v", name, n, err, objects.ErrChanged)
		}
		if _, err := o.ReadAt(make([]byte, 10), 5*objects.ChunkSize); !errors.Is(err, objects.ErrChanged) {
			t.Errorf("%s: read at: %v, want %v", name, err, objects.ErrChanged)
		}
		stream.Close()
		upload(t, store, "a", data)
	}
	if _, err := store.Open(t.Context(), objects.Info{Location: at("none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an object that is not there: %v", err)
	}
}

// Close ends what is read ahead, and leaves nothing running, even of a store
// that does not answer.
func TestCloseWhileDown(t *testing.T) {
	_, proxy, store := stores(t)
	upload(t, store, "a", bytesOf(4*objects.ChunkSize))
	o, err := store.Open(t.Context(), objects.Info{Location: at("a")})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan struct{}, 1000)
	proxy.Do(func(*http.Request) s3test.Fault {
		failed <- struct{}{}
		return s3test.Fault{Kind: s3test.Reset}
	})
	stream := o.Stream()
	done := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, stream)
		done <- err
	}()
	<-failed
	o.Close()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	stream.Close()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if bytes.Contains(stacks, []byte("objects.(*Object).fill")) {
		t.Errorf("something reads still:\n%s", stacks)
	}
}
