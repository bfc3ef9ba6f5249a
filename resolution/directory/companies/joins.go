package companies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
)

// Joins has the company of each owner of IP ranges and of each person, as rows of a table. That is
// the table of a File, and behind it the companies that only owners or people name. It is safe from
// many goroutines.
type Joins struct {
	Table
	// Raw are the columns of the table. Only rows that a Checker has checked may be read.
	Raw            *resolution.CompanyRows
	file           *keyed.Columns
	owners, people keyed.Checked[uint32]

	mu       sync.Mutex
	checkers map[[resolution.CompanyColumns]bool]*Checker
}

// OpenJoins returns how a file of Joiner is opened, for as many owners and people. What it lacks of the
// table is in base.
func OpenJoins(base *File, owners, people int) func(disk.Folder, string) (*Joins, error) {
	return func(in disk.Folder, name string) (*Joins, error) { return openJoins(in, name, base, owners, people) }
}

func openJoins(in disk.Folder, name string, base *File, owners, people int) (*Joins, error) {
	c, err := keyed.OpenColumns(in, name)
	if err != nil {
		return nil, err
	}
	r := &keyed.ColumnReader{Columns: c}
	j := &Joins{file: c, Table: base.Table, checkers: map[[resolution.CompanyColumns]bool]*Checker{}}
	j.owners, j.people = keyed.ReadChecked[uint32](r, "owners", owners), keyed.ReadChecked[uint32](r, "people", people)
	for i, column := range names {
		switch {
		case r.Has(column):
			j.Columns[i] = keyed.ReadValues(r, column, widths[i])
		case r.Has(column + "_codes"):
			j.Columns[i] = keyed.ReadCodes(r, column).With(base.Columns[i])
		}
		if r.Err == nil && (j.Columns[i].Rows() == 0 || j.Columns[i].Rows() != j.Columns[0].Rows()) {
			r.Err = fmt.Errorf("%w: section %s is not what it should be", keyed.ErrDamaged, column)
		}
	}
	if r.Err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", in.Path(name), r.Err), c.Close())
	}
	j.Raw = &resolution.CompanyRows{}
	for i := range j.Columns {
		c := &j.Raw.Columns[i]
		c.Codes, c.Offsets, c.Bytes = j.Columns[i].Raw()
		c.Width = widths[i]
	}
	return j, nil
}

// Close closes the file.
func (j *Joins) Close() error { return j.file.Close() }

// CheckAll checks the checksums that were not checked yet.
func (j *Joins) CheckAll() error { return j.file.CheckAll() }

// Verify checks all checksums, and that every row is one of the table. Owners and people are its keys.
func (j *Joins) Verify(context.Context) (keys, rows int64, err error) {
	if err := j.file.Verify(); err != nil {
		return 0, 0, err
	}
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	for _, of := range []*keyed.Checked[uint32]{&j.owners, &j.people} {
		for i := range uint64(of.Len()) {
			if row := of.At(i); int(row) >= j.Rows() {
				return 0, 0, fmt.Errorf("%w: row %d is out of place", keyed.ErrDamaged, row)
			}
		}
	}
	return int64(j.owners.Len() + j.people.Len()), -1, j.verify()
}

// Owners sets rows to those of the companies of owners, which have numbers from 1; 0 without one.
// Call it under keyed.Guard.
func (j *Joins) Owners(owners, rows []uint32) { load(&j.owners, owners, 0, 1, rows) }

// People sets rows to those of the employers of people, by their rows; 0 without one. Call it under
// keyed.Guard.
func (j *Joins) People(people, rows []uint32) { load(&j.people, people, keyed.None, 0, rows) }

// load loads the elements of numbers that are not none, the first of which has the number first.
func load(of *keyed.Checked[uint32], numbers []uint32, none, first uint32, rows []uint32) {
	var places [together]uint64
	var index [together]int
	var loaded [together]uint32
	n := 0
	for i, number := range numbers {
		if rows[i] = 0; number != none {
			places[n], index[n] = uint64(number-first), i
			n++
		}
		if n == together || i == len(numbers)-1 {
			of.Load(places[:n], loaded[:])
			for k, row := range loaded[:n] {
				rows[index[k]] = row
			}
			n = 0
		}
	}
}

// Checker checks rows of some columns before they are read: the checksums of their pages, and that
// codes and places of texts are inside the file. Each row is checked once, or the whole columns as soon
// as that is no more work than the rows before.
type Checker struct {
	rows    uint32
	columns []*keyed.Values
	done    []atomic.Uint64 // a bit for each row
	checked atomic.Int64    // rows
	bytes   int64           // of the columns; more than any if they may not fit into memory
	whole   atomic.Bool
	once    sync.Once
}

// bytesOfRow is how many bytes are checked in the time of a row at a random place.
const bytesOfRow = 4096

// Checker returns that of the columns that are read.
func (j *Joins) Checker(unread *[resolution.CompanyColumns]bool) *Checker {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.checkers[*unread]
	if c == nil {
		c = &Checker{rows: uint32(j.Rows()), done: make([]atomic.Uint64, j.Rows()/64+1)}
		for i := range j.Columns {
			if !unread[i] {
				c.columns = append(c.columns, &j.Columns[i])
				c.bytes += int64(j.Columns[i].Bytes())
			}
		}
		if slices.ContainsFunc(c.columns, (*keyed.Values).IsScattered) {
			c.bytes = math.MaxInt64
		}
		j.checkers[*unread] = c
	}
	return c
}

// Check checks rows. It goes column by column, so that the processor waits for the memory of many
// rows at once. Call it under keyed.Guard.
func (c *Checker) Check(rows []uint32) error {
	for _, row := range rows {
		if row >= c.rows {
			return fmt.Errorf("%w: row %d is out of place", keyed.ErrDamaged, row)
		}
	}
	if c.whole.Load() {
		return nil
	}
	if c.checked.Load() > c.bytes/bytesOfRow {
		c.once.Do(func() { c.whole.Store(c.checkWhole() == nil) }) // else the rows say whether it is theirs
	}
	var unchecked [together]uint32
	n := 0
	for i, row := range rows {
		if c.done[row/64].Load()>>(row%64)&1 == 0 {
			unchecked[n] = row
			n++
		}
		if n == together || i == len(rows)-1 {
			for _, column := range c.columns {
				for _, row := range unchecked[:n] {
					column.At(row)
				}
			}
			for _, row := range unchecked[:n] {
				c.done[row/64].Or(1 << (row % 64))
			}
			c.checked.Add(int64(n))
			n = 0
		}
	}
	return nil
}

func (c *Checker) checkWhole() (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	for _, column := range c.columns {
		if err := column.CheckAll(); err != nil {
			return err
		}
	}
	return nil
}

var nameColumn = slices.Index(names, "company_name")

// Joiner makes a file of Joins.
type Joiner struct {
	base           *File
	owners, people *keyed.Spool[uint32]
	more           *keyed.Lexicon       // companies behind those of base: domain and name
	like           *keyed.Spool[uint32] // the row of base with their other values; 0 without one
	text           []byte
	rows           []uint32
}

// NewJoiner makes a Joiner of the companies of base, with temporary files in the folder scratch.
func NewJoiner(base *File, scratch string) *Joiner {
	return &Joiner{
		base: base, owners: keyed.NewSpool[uint32](scratch), people: keyed.NewSpool[uint32](scratch),
		more: keyed.NewLexicon(scratch), like: keyed.NewSpool[uint32](scratch),
	}
}

// Close frees the temporary files. It may be called again.
func (j *Joiner) Close() error {
	return errors.Join(j.owners.Close(), j.people.Close(), j.more.Close(), j.like.Close())
}

// AddOwners adds the next owners of ranges by their domains and names.
func (j *Joiner) AddOwners(domains, names []string) error { return j.add(j.owners, domains, names) }

// AddPeople adds the next people by the domains of their employers.
func (j *Joiner) AddPeople(domains []string) error { return j.add(j.people, domains, nil) }

func (j *Joiner) add(to *keyed.Spool[uint32], domains, names []string) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	j.rows = slices.Grow(j.rows[:0], len(domains))[:len(domains)]
	clear(j.rows)
	if j.base != None {
		j.base.FindAll(domains, j.rows)
	}
	for i, domain := range domains {
		name := ""
		if names != nil {
			name = names[i]
		}
		row := j.rows[i]
		switch {
		case domain == "" && name == "", row > 0 && (name == "" || j.base.Columns[nameColumn].Code(row) > 0):
		default:
			if row, err = j.another(row, domain, name); err != nil {
				return err
			}
		}
		if err := to.Add(row); err != nil {
			return err
		}
	}
	return nil
}

// another returns the row of a company that is not in base, or has no name there.
func (j *Joiner) another(like uint32, domain, name string) (uint32, error) {
	j.text = imports.AppendCells(j.text[:0], domain, name)
	code, added, err := j.more.Code(unsafe.String(unsafe.SliceData(j.text), len(j.text)))
	if added {
		err = errors.Join(err, j.like.Add(like))
	}
	return uint32(j.baseRows()) + code, err
}

// baseRows is the number of rows of base, with row 0.
func (j *Joiner) baseRows() int { return max(1, j.base.Rows()) }

// Write writes the file.
func (j *Joiner) Write(ctx context.Context, to imports.File) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true)) // the temporary files are mapped
	w := keyed.NewColumnWriter(to, keyed.MappedPages)
	owners, errOwners := j.owners.Read()
	people, errPeople := j.people.Read()
	keyed.Column(w, "owners", owners)
	keyed.Column(w, "people", people)
	if err := errors.Join(errOwners, errPeople); err != nil {
		return err
	}
	if j.more.Len() > 0 || j.base == None {
		if err := j.table(ctx, w, to.Scratch); err != nil {
			return err
		}
	}
	return w.Finish()
}

// table writes the columns that differ from those of base. Names and domains are all there again,
// because each is there once. Of the others base has the values.
func (j *Joiner) table(ctx context.Context, w *keyed.ColumnWriter, scratch string) (err error) {
	more, errMore := j.more.Read()
	like, errLike := j.like.Read()
	if err := errors.Join(errMore, errLike); err != nil {
		return err
	}
	n := j.baseRows()
	for i, column := range names {
		if i == nameColumn || i == domainColumn {
			continue
		}
		keyed.PutEach(w, column+"_codes", n+len(like), func(row int) uint32 {
			switch {
			case j.base == None:
				return 0
			case row < n:
				return j.base.Columns[i].Code(uint32(row))
			}
			return j.base.Columns[i].Code(like[row-n])
		})
		if j.base == None {
			keyed.PutNoValues(w, column, widths[i])
		}
	}
	t := keyed.NewTableWriter(scratch, []string{names[nameColumn], names[domainColumn]}, []int{0, 0})
	defer func() { err = errors.Join(err, t.Close()) }()
	for row := range uint32(n + len(like)) {
		var name, domain []byte
		switch {
		case row == 0:
			continue
		case int(row) < n:
			name, domain = j.base.Columns[nameColumn].At(row), j.base.Columns[domainColumn].At(row)
		default:
			domain, name = imports.NextCell(more.At(row - uint32(n)))
			name, _ = imports.NextCell(name)
		}
		if _, err := t.Add(name, domain); err != nil {
			return err
		}
	}
	return t.Write(ctx, w)
}
