package directory

import (
	"context"
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/resolution/directory/companies"
	"github.com/leadetl/leadetl/resolution/directory/imports"
)

// joins names the file that joins companies with those who name them. It is no kind that is
// imported: each import of one of joined makes it anew.
const joins Kind = "joins"

var joined = []Kind{People, Companies, IPRanges}

// openJoins opens the file of joins. The files of joined are open.
func (d *Directory) openJoins(e entry) error {
	if err := e.checkSize(d.dir); err != nil {
		return err
	}
	f, err := opening(companies.OpenJoins(d.companies, d.owners(), d.personRows()), func(d *Directory) **companies.Joins { return &d.joins })(d, e.File)
	if err == nil {
		d.files[joins] = f
	}
	return err
}

// owners is the number of owners of IP ranges.
func (d *Directory) owners() int {
	if d.ranges == nil {
		return 0
	}
	return d.ranges.OwnerCount()
}

// personRows is the number of rows of people.
func (d *Directory) personRows() int { return max(0, d.people.Rows()) }

// join makes the file of joins, if the import has changed what it is made of.
func (im *importer) join(ctx context.Context, files Files) (*entry, error) {
	m := im.manifest
	var some []Kind
	changed := false
	for _, k := range joined {
		e, there := m.Kinds[k]
		if there && !e.columnar() {
			return nil, nil // it has to be imported again before the directory can be opened
		}
		if there {
			some = append(some, k)
		}
		changed = changed || *files.Of(k) != ""
	}
	if !changed {
		return m.Joins, nil
	}
	progress.Of(ctx).Step("joining companies")
	d := newDirectory(im.dir, m)
	err := d.open(some)
	var e entry
	if err == nil {
		e, err = im.write(joins, func(to imports.File) error { return d.writeJoins(ctx, to) })
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("join companies with people and IP ranges (import damaged files in the same command): %w", err)
	}
	e.Keys = int64(d.owners() + d.personRows())
	return &e, nil
}

// joinedAtOnce is how many people or owners are joined together.
const joinedAtOnce = 1024

func (d *Directory) writeJoins(ctx context.Context, to imports.File) (err error) {
	j := companies.NewJoiner(d.companies, to.Scratch)
	defer func() { err = errors.Join(err, j.Close()) }()
	domains, names := make([]string, joinedAtOnce), make([]string, joinedAtOnce)
	if err := inSteps(ctx, d.owners(), func(from, to int) error {
		if err := guarded(IPRanges, func() { d.ranges.NamesOf(from, domains[:to-from], names) }); err != nil {
			return err
		}
		return damaged(Companies, j.AddOwners(domains[:to-from], names))
	}); err != nil {
		return err
	}
	if err := inSteps(ctx, d.personRows(), func(from, to int) error {
		if err := guarded(People, func() { d.people.Employers(uint32(from), domains[:to-from]) }); err != nil {
			return err
		}
		return damaged(Companies, j.AddPeople(domains[:to-from]))
	}); err != nil {
		return err
	}
	return damaged(Companies, j.Write(ctx, to))
}

// inSteps calls do for joinedAtOnce of n at a time.
func inSteps(ctx context.Context, n int, do func(from, to int) error) error {
	for from := 0; from < n; from += joinedAtOnce {
		if err := errors.Join(ctx.Err(), do(from, min(n, from+joinedAtOnce))); err != nil {
			return err
		}
	}
	return nil
}
