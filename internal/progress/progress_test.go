package progress

import (
	"context"
	"io"
	"strings"
	"testing"
)

func TestWork(t *testing.T) {
	var w Work
	ctx := In(t.Context(), &w)
	Of(ctx).Expect(100)
	Of(ctx).Expect(-1) // of an input whose size is unknown
	Of(ctx).Done(7)
	Of(ctx).Step("people")
	if n, err := io.Copy(io.Discard, Of(ctx).Reader(strings.NewReader("0123456789"))); n != 10 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if done, expected, step := w.Now(); done != 17 || expected != 100 || step != "people" {
		t.Errorf("%d of %d, %q; want 17 of 100, people", done, expected, step)
	}
}

// TestUnwatched: nothing is counted if nobody watches.
func TestUnwatched(t *testing.T) {
	w := Of(context.Background())
	w.Expect(1)
	w.Done(1)
	w.Step("people")
	if r := strings.NewReader(""); w != nil || w.Reader(r) != io.Reader(r) {
		t.Error("somebody watches")
	}
}
