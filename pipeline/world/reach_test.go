package world

import "github.com/leadetl/leadetl/internal/worldtest"

// reach is what the worlds have to reach. What is counted is statements, so the product knows
// nothing of it.
var reach = worldtest.Reach{
	Packages: []string{"pipeline/purchase", "pipeline/answers", "pipeline/order", "pipeline/pace"},
	Least:    0.9,
	Rare: worldtest.Branches{
		{"a log is moved into the database", "pipeline/answers/log.go", "func (s *Store) move(full *generation) error {\n\tif err := s.writer"},
	},
	Unreached: map[string]string{},
}
