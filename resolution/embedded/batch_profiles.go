package embedded

import (
	"context"
	"fmt"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/resolution"
)

// Profiles answers addresses; see resolution.ProfileBatch.
func (b *batch) Profiles(ctx context.Context, addresses, profiles *resolution.Texts) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.engine.options.Listed != nil {
		return fmt.Errorf("embedded %s: %w: suppressed people need a lead for each key", b.operation, resolution.ErrInvalid)
	}
	profiles.Reset()
	b.sums = resize(b.sums, 32*addresses.Len())
	hashlanes.SHA256(b.sums, addresses.Data, addresses.Offsets)
	if b.engine.directory == nil {
		for range addresses.Len() {
			profiles.End()
		}
		return nil
	}
	if err := b.engine.directory.AppendProfiles(addresses, b.sums, profiles); err != nil {
		return fmt.Errorf("embedded %s: %w", b.operation, readable(err))
	}
	return nil
}
