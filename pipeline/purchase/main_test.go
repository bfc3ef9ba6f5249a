package purchase

import (
	"context"
	"errors"
	"io"
	"log"
	"testing"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/pipeline/answers"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // as the command does: net/http logs an unsolicited answer
	goleak.VerifyTestMain(m)
}

// must fails the test for errors.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// openStore opens a store of answers that is closed with the test.
func openStore(t testing.TB) *answers.Store {
	t.Helper()
	store, err := answers.Open(context.Background(), answers.InFolder(t.TempDir()), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}
