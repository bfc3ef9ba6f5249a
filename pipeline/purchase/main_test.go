package purchase

import (
	"errors"
	"io"
	"log"
	"testing"

	"go.uber.org/goleak"
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
