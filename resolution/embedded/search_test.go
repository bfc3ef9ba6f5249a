package embedded

import (
	"testing"

	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

func TestSearchConformance(t *testing.T) { resolutiontest.RunSearch(t, New(sample(t), Options{})) }
