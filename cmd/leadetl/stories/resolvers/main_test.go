package resolvers

import (
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }
