package objects_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// An object is created once, whatever becomes of requests and answers; who
// comes second with other content is told.
func TestCreate(t *testing.T) {
	server, proxy, store := stores(t)
	mine, theirs := objects.ContentOf([]byte("mine"), ""), objects.ContentOf([]byte("theirs"), "")
	for name, fault := range map[string]s3test.Fault{
		"pass": {}, "lost": {Kind: s3test.Lose}, "reset": {Kind: s3test.Reset}, "busy": answer(503, "SlowDown"), "conflict": answer(409, "ConditionalRequestConflict"),
	} {
		proxy.Do(once(1, s3test.IsWrite, fault))
		if err := store.Create(t.Context(), at(name), mine); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := store.Create(t.Context(), at(name), mine); err != nil {
			t.Errorf("%s: the same again: %v", name, err)
		}
		if err := store.Create(t.Context(), at(name), theirs); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: another: %v, want %v", name, err, fs.ErrExist)
		}
		if got := onDisk(t, server, name); got != "mine" {
			t.Errorf("%s: the object is %q", name, got)
		}
	}
	proxy.Do(once(1, s3test.IsWrite, answer(501, "NotImplemented")))
	var refused *objects.RefusedError
	if err := store.Create(t.Context(), at("new"), mine); !errors.As(err, &refused) {
		t.Errorf("a store without conditions: %v", err)
	}
}
