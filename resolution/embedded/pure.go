package embedded

import (
	"github.com/leadetl/leadetl/resolution"
)

// Pure reports whether every answer to op follows from the identifier alone:
// an email has its hashes whether the directory knows it or not, and without
// people there is nothing to add.
func (e *Engine) Pure(op resolution.Operation) bool {
	return op == resolution.EmailToHEM && e.options.Listed == nil && (e.directory == nil || !e.directory.HasPeople())
}
