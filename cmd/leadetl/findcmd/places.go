package findcmd

import (
	"context"
	"errors"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/find"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/sources"
)

// search goes through all places.
type search struct {
	*flags
	std      cli.Streams
	who      subjects
	record   *record
	removals []removal
	// fingerprints are those of the directories, by which datasets name theirs.
	fingerprints map[string]string
}

// all searches every place. What cannot be read is noted, and the others are searched. The error is an
// interruption.
func (s *search) all(ctx context.Context, datasets []string) error {
	s.fingerprints = map[string]string{}
	for _, one := range []struct {
		places []string
		in     func(context.Context, string) error
	}{{s.states, s.state}, {s.directories, s.directory}, {datasets, s.datasets}, {s.lists, s.list}} {
		for _, place := range one.places {
			progress.Of(ctx).Step("searching " + place)
			err := one.in(ctx, place)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.record.failed(place, err)
		}
	}
	return nil
}

// state searches the stored answers of a state.
func (s *search) state(ctx context.Context, state string) error {
	places, err := wire.OpenAnswers(ctx, state, &s.s3, s.std)
	if err != nil {
		return err
	}
	all, err := places.All(ctx)
	if err != nil {
		return err
	}
	found, open := false, false
	for _, place := range all {
		in := s.record.in("answers", place.String())
		s.record.failed(place.String(), s.answers(ctx, place, in))
		in.end()
		found, open = found || in.found > 0, open || in.open
	}
	if len(all) == 0 {
		s.record.in("answers", state).end()
	}
	if err := s.besides(ctx, state); err != nil {
		return err
	}
	if !found {
		return nil
	}
	versions := false
	if on, is := places.(*objectstate.State); is {
		versions, err = on.KeepsVersions(ctx)
	}
	s.forget(state, open, versions)
	return err
}

func (s *search) answers(ctx context.Context, place answers.Place, in *inPlace) (err error) {
	contents, err := answers.OpenContents(ctx, place)
	if errors.Is(err, answers.ErrNone) { // its first writer was killed before it had any
		return nil
	}
	if err == nil {
		err = errors.Join(find.Answers(ctx, contents, s.who.Subjects, in), contents.Close())
	}
	return err
}

// besides notes what a state keeps that answers forget does not reach: what a repair set aside, and what a run of a
// dataset on S3 has not sent.
func (s *search) besides(ctx context.Context, state string) error {
	files, err := wire.OpenDataset(ctx, state, &s.s3, s.std.Log())
	if err != nil {
		return err
	}
	names, err := files.List(ctx)
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, ".damaged"):
			s.record.Unread(files.Path(name), errors.New("it was set aside as damaged: delete it when you need it no more"))
		case strings.HasPrefix(name, "s3/") && !objects.Is(state):
			s.record.Unread(files.Path(name), errors.New("a run has not finished it, or was killed: run the same command again"))
		}
	}
	return err
}

// directory searches reference data.
func (s *search) directory(ctx context.Context, dir string) (err error) {
	d, err := wire.OpenDirectory(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s.fingerprints[d.Fingerprint()] = dir
	files, err := d.Persons()
	s.record.failed(dir, err)
	in, with := s.record.in("directory", dir), map[directory.Kind]bool{}
	in.DirectoryFingerprint = d.Fingerprint()
	for _, f := range files {
		what, before := string(f.Kind), in.found
		if !f.Replaced.IsZero() {
			what = "replaced " + what
		}
		err := find.Persons(ctx, f.Records, f.Identify, find.Hit{What: what, File: f.File}, s.who.Subjects, in)
		if err == nil {
			in.Read(find.File{Name: f.File, Rows: int64(f.Records), Bytes: f.Bytes, SHA256: f.SHA256})
		} else {
			s.record.failed(wire.PathIn(dir, f.File), err)
		}
		if in.found > before {
			with[f.Kind] = true
		}
	}
	in.end()
	s.imports(dir, d, with)
	return nil
}

// datasets searches a dataset, or those below a folder.
func (s *search) datasets(ctx context.Context, uri string) error {
	files, err := wire.OpenDataset(ctx, uri, &s.s3, s.std.Log())
	if err != nil {
		return err
	}
	all, err := find.Datasets(ctx, files, s.record)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("it has no dataset")
	}
	for _, d := range all {
		place := uri
		if d.Folder != "" {
			place = wire.PathIn(uri, d.Shown())
		}
		progress.Of(ctx).Step("searching " + place)
		in := s.record.in("dataset", place)
		in.ManifestSHA256 = d.SHA256
		if m := d.Manifest; m != nil {
			in.JobID, in.CompletedAt = m.JobID, m.CompletedAt
		}
		if err := d.Search(ctx, s.who.Subjects, in); err != nil {
			return err
		}
		if in.end(); in.found > 0 {
			s.runs(place, d)
		}
	}
	return nil
}

// list searches suppression lists.
func (s *search) list(ctx context.Context, uri string) error {
	store, err := s.s3.Open(ctx, s.std.Log())
	if err != nil {
		return err
	}
	in, looker := s.record.in(listKind, uri), s.who.Looker()
	lists, err := (&wire.Suppress{Lists: []string{uri}, Reading: sources.Options{Objects: store}}).Each(progress.In(ctx, nil), func(c wire.Cell) error {
		looker.Note("entry", looker.NamesInCell(c.Text))
		for _, h := range looker.Hits(find.Hit{What: "list", File: c.File, Row: c.Line}) {
			in.Hit(h)
		}
		return wire.NewBuilder(s.defaultRegion, s.networkHosts).Add(c.Text)
	})
	if err != nil {
		return err
	}
	for _, place := range lists.Places {
		in.Unread(place, errors.New("the entry cannot be read"))
	}
	for _, list := range lists.Withdrawn {
		in.Unread(list, errors.New("it is DROP's list of withdrawn requests, which has no hashes"))
	}
	in.end()
	return nil
}
