package program

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/pipeline/audience"
)

// writeChanges writes who is in an earlier dataset and not in this one, and who is new in this one. Both are
// computed from the people of the datasets: the changes beside a dataset have no data of people who opted out.
func (f *exportFlags) writeChanges(ctx context.Context, now *exported, people audience.Settings, std cli.Streams, log *slog.Logger) error {
	earlier, err := f.open(ctx, f.since, people, nil, log)
	if err != nil {
		return err
	}
	var targets [2]*exportTarget
	changes := [2]struct {
		name        string
		of, without *exported
	}{{"remove", earlier, now}, {"add", now, earlier}}
	folder := strings.TrimSuffix(f.out, "/") + "/"
	for i, c := range changes { // before anything is written
		f.out = folder + c.name
		if targets[i], err = f.target(ctx, std, log); err != nil {
			return err
		}
	}
	for i, c := range changes {
		of, without := c.of.of.(*list), c.without.of.(*list)
		whole := *without
		unlimited := *without.of
		unlimited.MaxBytes, whole.of = 0, &unlimited
		whole.limit, whole.seen, whole.other = 0, audience.Seen{}, nil
		all := &exportTarget{format: f.format, pipe: io.Discard}
		if _, err := f.write(ctx, all, &exported{c.without.Reader, c.without.manifest, c.without.scan, &whole}, std); err != nil {
			return err
		}
		of.seen, of.other = audience.Seen{}, whole.seen
		if _, err := f.write(ctx, targets[i], c.of, std); err != nil {
			return err
		}
		if !f.quiet {
			if err := of.summary(std.Out, folder+c.name); err != nil {
				return err
			}
		}
		of.other, of.seen = nil, nil
	}
	return nil
}
