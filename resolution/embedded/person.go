package embedded

import (
	"context"

	"github.com/leadetl/leadetl/resolution/directory/people"
)

// person finds a person by profile key; nil if they are unknown or suppressed.
func (e *Engine) person(ctx context.Context, key string) (*people.Person, error) {
	if e.directory == nil {
		return nil, nil
	}
	p, err := e.directory.Person(ctx, key)
	switch {
	case err != nil:
		return nil, unreadable(ctx, err)
	case e.hides(p):
		return nil, nil
	}
	return p, nil
}
