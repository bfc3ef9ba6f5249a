package embedded

import (
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
)

// Pure reports whether every answer to op follows from the identifier alone, as for hashes of
// emails without people in the directory.
func (e *Engine) Pure(op resolution.Operation) bool {
	return op.Identifier() == resolution.Email && e.options.Listed == nil && (e.directory == nil || !e.directory.Has(directory.People))
}
