package sources

import (
	"context"
	"os"
	"reflect"
	"syscall"
	"testing"
)

// A named pipe is what <(command) is in a shell: it can be opened once.
func TestNamedPipe(t *testing.T) {
	folder(t, nil)
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() { done <- os.WriteFile("pipe", []byte(zst("id,email\n1,x\n")), 0) }()
	got, err := rowsOf([]string{"pipe"}, []string{"email"}, Options{})
	if want := []string{"pipe:1 x"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A writer that stops writing does not keep Next from being cancelled, nor
// Close from ending what reads ahead.
func TestStreamThatWaits(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	sample := make([]byte, 2<<20)
	for i := range sample {
		sample[i] = "0123456\n"[i%8]
	}
	go out.Write(sample)
	l, err := Open(t.Context(), []string{"-"}, Options{Stdin: in})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Reader([]string{"0123456"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	rows := 0
	for rows < 1<<20/8 { // what Open has seen is there
		b, err := r.Next(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		rows += b.Len()
		b.Release()
	}
	cancel()
	for err == nil {
		var b *Batch
		if b, err = r.Next(ctx, 0); err == nil {
			b.Release()
		}
	}
	if err != context.Canceled {
		t.Errorf("Next: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
