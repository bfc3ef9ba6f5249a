package purchase

import (
	"io"
	"log"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // as the command does: net/http logs an unsolicited answer
	goleak.VerifyTestMain(m)
}
