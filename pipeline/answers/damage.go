package answers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/groupcommit"
)

// Inspection is what can be read of a folder of answers, and what is damaged.
type Inspection struct {
	Answers, Calls int64 // that can be read; calls without an answer
	Damages        []error
	Lost           Lost
}

// Lost is what damaged files of the log had.
type Lost struct {
	// Answers are stored answers that are lost, and Credits what they cost.
	Answers, Credits int64
	// Intents are calls whose questions cannot be named. The next run buys their answers again.
	Intents int64
	// AtMost means that the end of the log is lost, so that Intents is a bound, and says what bounds it.
	AtMost Bound
}

// Bound is what bounds the calls of records that are lost.
type Bound string

const (
	byAllowance Bound = "before it begins them, a run notes how many calls it may begin"
	byLogSize   Bound = "so many are in two files of a log at most; the note that says less is lost, too"
	byGroups    Bound = "so many are in a segment of its size at most"
)

// Whole reports whether nothing is damaged.
func (i Inspection) Whole() bool { return len(i.Damages) == 0 }

// Inspect reads all answers in dir, and changes nothing. Of options only Logs counts.
func Inspect(ctx context.Context, dir string, o Options) (found Inspection, err error) {
	in := o.logs(dir)
	path, err := filepath.Abs(filepath.Join(dir, databaseName))
	if err != nil {
		return found, err
	}
	logs, err := logsIn(in)
	if err != nil {
		return found, err
	}
	if !Exist(dir) {
		if len(logs) > 0 {
			return Inspection{Damages: []error{appendlog.Missing(path)}}, nil
		}
		return found, fmt.Errorf("%s: %w", dir, ErrNone)
	}
	inUse, err := filelock.InUse(dir)
	if err == nil && inUse {
		err = fmt.Errorf("%s: %w", dir, filelock.ErrLocked)
	}
	if err != nil {
		return found, err
	}
	switch damage, err := checkDatabase(ctx, path); {
	case err != nil:
		return found, err
	case damage != nil:
		return Inspection{Damages: []error{damage}}, nil
	}
	db, err := sql.Open("sqlite", groupcommit.URI(path, "query_only(1)"))
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := salvageLogs(ctx, db, in)
	if err != nil {
		return found, err
	}
	found.Damages, found.Lost = s.damages, s.lost
	if begun, err := isBegun(ctx, db); err != nil {
		return found, err
	} else if begun {
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM keys").Scan(&found.Answers); err != nil {
			return found, err
		}
	}
	for _, g := range s.logs {
		found.Answers += int64(len(g.latest)) // also those that replace an older one
	}
	found.Calls = int64(len(s.open))
	return found, nil
}

// checkDatabase has SQLite check its database, and returns what is damaged. It may be interrupted.
func checkDatabase(ctx context.Context, path string) (damage, err error) {
	db, err := sql.Open("sqlite", groupcommit.URI(path, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	var said string
	err = errors.Join(db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said), db.Close())
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s is %w: %w", path, appendlog.ErrDamaged, err), nil
	case said != "ok":
		return fmt.Errorf("%s is %w: %s", path, appendlog.ErrDamaged, said), nil
	}
	return nil, nil
}

// isBegun reports whether a database has its tables.
func isBegun(ctx context.Context, from querier) (bool, error) {
	var number int
	err := from.QueryRowContext(ctx, "PRAGMA user_version").Scan(&number)
	return number > 0, fault(err)
}

// leastIntent is less than the bytes of any intent in a log.
const leastIntent = 90

// salvage is what can be read of the logs that the database lacks, damaged or not.
type salvage struct {
	logs    []*generation
	next    appendlog.Position
	damages []error
	damaged []string // files, for their damage
	lost    Lost
	unnamed map[string]int64 // calls by the names of their runs that are kept as spent

	have map[string]runTotal // of runs by name, after the last record that was read
	open map[Hash]bool       // calls without an answer
	gap  bool                // records are missing before the next one
	most int64               // calls that these have begun, if that is known
}

func newSalvage() *salvage {
	return &salvage{unnamed: map[string]int64{}, have: map[string]runTotal{}, open: map[Hash]bool{}}
}

// salvageLogs reads the logs that the database lacks.
func salvageLogs(ctx context.Context, from querier, dir disk.Folder) (*salvage, error) {
	s := newSalvage()
	at := logState{Position: appendlog.First}
	begun, err := isBegun(ctx, from)
	if begun {
		if at, err = readLogState(ctx, from); err == nil {
			err = s.readDatabase(ctx, from)
		}
	}
	if err != nil {
		return nil, err
	}
	numbers, err := logsIn(dir)
	if err != nil {
		return nil, err
	}
	s.next = at.Position
	if !begun && len(numbers) > 0 {
		s.lose(fmt.Errorf("stored answers: %w", errNoWAL))
	}
	begun = at.open
	for _, number := range numbers {
		if number < at.Number {
			continue
		}
		if number > s.next.Number {
			s.lose(missingLog(dir, s.next.Number))
			s.next = appendlog.Position{Number: number}
		}
		if begun, err = s.read(dir, number, begun); err != nil {
			return nil, err
		}
	}
	if begun && !slices.Contains(numbers, s.next.Number) {
		s.lose(missingLog(dir, s.next.Number))
	}
	if s.gap {
		s.loseEnd(dir)
	}
	return s, nil
}

// readDatabase reads the totals of all runs, and the open calls.
func (s *salvage) readDatabase(ctx context.Context, from querier) error {
	_, err := collect(ctx, from, func(row interface{ Scan(...any) error }) (id int64, err error) {
		var r runTotal
		err = row.Scan(&id, &r.Name, &r.Intents, &r.Answers, &r.Unpriced, &r.Credits)
		s.have[r.Name] = r
		return id, err
	}, "SELECT id, name, intents, answers, unpriced, credits FROM runs")
	if err != nil {
		return err
	}
	calls, err := readCalls(ctx, from)
	for _, c := range calls {
		s.open[c.open.Hash] = true
	}
	return err
}

func (s *salvage) lose(damage error) {
	s.damages, s.gap = append(s.damages, damage), true
}

// read reads a file of the log. It reports whether the log goes on in another one.
func (s *salvage) read(dir disk.Folder, number int64, begun bool) (ended bool, err error) {
	g, last := newGeneration(number), s.next.Number-1
	content, damages, err := appendlog.Salvage(dir, logName(number), s.next, begun, func(number int64, record []byte) error {
		s.gap = s.gap || number > last+1
		last = max(last, number)
		return s.take(record, g)
	})
	if err != nil {
		return false, fmt.Errorf("stored answers: %w", err)
	}
	for _, damage := range damages {
		s.damages = append(s.damages, fmt.Errorf("stored answers: %w", damage))
	}
	if len(damages) > 0 {
		s.damaged = append(s.damaged, logName(number))
	}
	s.gap = s.gap || len(damages) > 0 && content.Cut
	g.end, s.next = content.Next, content.Next
	s.logs = append(s.logs, g)
	return content.Ended, nil
}

// take makes the changes of a record. If records are missing before it, its totals say what they had.
func (s *salvage) take(record []byte, g *generation) error {
	own := &counted{open: s.open, added: map[int64]runTotal{}, totals: map[int64]runTotal{}}
	if err := errors.Join(readGroup(record, own), readGroup(record, g)); err != nil {
		return err
	}
	s.count(own)
	return nil
}

// count compares the totals of a record with those before it.
func (s *salvage) count(own *counted) {
	for id, total := range own.totals {
		if s.gap {
			before, added := s.have[total.Name], own.added[id]
			answers, intents := max(0, total.Answers-added.Answers-before.Answers), max(0, total.Intents-added.Intents-before.Intents)
			if s.most > 0 {
				intents = min(intents, s.most)
			}
			s.lost.Answers += answers
			s.lost.Credits += max(0, total.Credits-added.Credits-before.Credits)
			s.lost.Intents += intents
			s.unnamed[total.Name] += intents - answers // each of the answers has ended a call
		}
		s.have[total.Name] = total
	}
	if len(own.totals) > 0 {
		s.gap, s.most = false, 0
	}
	for _, run := range own.known {
		if s.lost.Intents > 0 {
			s.lost.Intents--
			s.unnamed[own.totals[run].Name]--
		}
	}
}

// loseEnd counts what a lost end of the log may have had: what runs were allowed to begin, and had not begun
// before.
func (s *salvage) loseEnd(dir disk.Folder) {
	allowed, err := readAllowance(dir)
	if err != nil {
		s.loseMost(2*(maxLogBytes/leastIntent+maxGroup), byLogSize)
		return
	}
	s.lost.AtMost = byAllowance
	for _, r := range allowed {
		calls := max(0, r.Intents-s.have[r.Name].Intents)
		s.unnamed[r.Name] += calls
		s.lost.Intents += calls
	}
}

// loseMost counts calls of which it is not known which run has begun them.
func (s *salvage) loseMost(most int64, by Bound) {
	runs := map[string]bool{}
	for _, g := range s.logs {
		for _, r := range g.runs {
			runs[r.Name] = true
		}
	}
	for name := range s.have {
		if len(runs) == 0 || runs[name] {
			s.unnamed[name] += most
		}
	}
	s.lost.Intents += most
	s.lost.AtMost = by
}

// counted counts what a record adds to its runs.
type counted struct {
	open   map[Hash]bool
	added  map[int64]runTotal
	totals map[int64]runTotal // after the record
	known  []int64            // the runs of calls whose intents are in no record that was read
}

func (c *counted) add(run int64, what runTotal) {
	sum := c.added[run]
	sum.Intents, sum.Spending = sum.Intents+what.Intents, sum.Plus(what.Spending)
	c.added[run] = sum
}

func (c *counted) setCall(now *call) {
	switch {
	case c.open[now.open.Hash]:
	case now.open.Attempts == 1 && now.open.State == UnderWay:
		c.add(now.run, runTotal{Intents: 1})
	default:
		c.known = append(c.known, now.run)
	}
	c.open[now.open.Hash] = true
}

func (c *counted) closeCall(h Hash) { delete(c.open, h) }

func (c *counted) addAnswer(a *answered) {
	if !c.open[a.hash] {
		c.known = append(c.known, a.run)
	}
	delete(c.open, a.hash)
	var spent Spending
	spent.add(a.answer)
	c.add(a.run, runTotal{Spending: spent})
}

func (c *counted) setBody(Hash, KeptBody)      {}
func (c *counted) nameScope(int64, Scope)      {}
func (c *counted) setRun(id int64, r runTotal) { c.totals[id] = r }

// damagedSuffix ends the name of a damaged file that was set aside.
const damagedSuffix = ".damaged"

// Repair keeps all that can be read of a folder of answers. It sets damaged files of the log aside, whose
// names it returns, and counts what they had as spent by their runs. A damaged database cannot be
// repaired.
func Repair(ctx context.Context, dir string, o Options) (setAside []string, err error) {
	path, err := filepath.Abs(filepath.Join(dir, databaseName))
	if err != nil {
		return nil, err
	}
	cannot := func(damage error) error {
		return fmt.Errorf("%w; it cannot be repaired: bring it back from a backup, or move %s away to begin with no stored answers", damage, filepath.Dir(path))
	}
	if !Exist(dir) {
		return nil, cannot(appendlog.Missing(path))
	}
	switch damage, err := checkDatabase(ctx, path); {
	case err != nil:
		return nil, err
	case damage != nil:
		return nil, cannot(damage)
	}
	s, err := openDatabase(dir, path, Options{Logs: o.Logs, repair: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found, err := salvageLogs(ctx, s.reads, s.logs)
	if err != nil {
		return nil, err
	}
	for _, name := range found.damaged { // before the logs are: the next Open removes what is in the database
		text, err := s.logs.ReadFile(name)
		if err == nil {
			err = atomicfile.WriteIn(s.logs, name+damagedSuffix, text)
		}
		if err != nil {
			return setAside, err
		}
		setAside = append(setAside, s.logs.Path(name+damagedSuffix))
	}
	if err := s.writer.Write(ctx, func(tx *sqliteTx) error { return tx.applySalvage(found) }); err != nil {
		return setAside, err
	}
	return setAside, errors.Join(s.removeLogs(), disk.Dir(dir).Sync())
}

// applySalvage writes what was read of damaged logs, and what they had.
func (g *sqliteTx) applySalvage(found *salvage) error {
	if err := g.loadLastSeq(); err != nil {
		return err
	}
	for _, from := range found.logs {
		if err := errors.Join(g.addNames(from), g.checkNames(from), g.apply(from), g.Flush()); err != nil {
			return err
		}
	}
	for run, calls := range found.unnamed {
		if err := g.Exec("UPDATE runs SET answers = answers + ?1, unpriced = unpriced + ?1 WHERE name = ?2", max(calls, 0), run); err != nil {
			return err
		}
	}
	return errors.Join(g.markUnknown(), g.Exec("UPDATE log SET number = ?, before = 0", found.next.Number))
}

// addNames adds rows that a log refers to, which were lost with the end of the database.
func (g *sqliteTx) addNames(from *generation) error {
	for id, of := range from.scopes {
		if err := g.Exec("INSERT OR IGNORE INTO scopes(id, service, operation, settings) VALUES (?, ?, ?, '')", id, of.Service, string(of.Operation)); err != nil {
			return err
		}
	}
	for id, r := range from.runs {
		if err := g.Exec("INSERT OR IGNORE INTO runs(id, name) VALUES (?, ?)", id, r.Name); err != nil {
			return err
		}
	}
	return nil
}
