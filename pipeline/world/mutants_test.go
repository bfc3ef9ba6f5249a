package world

import "github.com/leadetl/leadetl/internal/worldtest"

// mutated is the code that holds the promise on money.
var mutated = worldtest.Mutated{
	Folders:    []string{"pipeline/purchase", "pipeline/answers", "pipeline/pace", "pipeline/journal", "internal/groupcommit", "internal/atomicfile"},
	Equivalent: [][4]string{},
}
