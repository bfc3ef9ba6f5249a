package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
)

// damagedSuffix ends the name of a damaged file that was set aside.
const damagedSuffix = ".damaged"

// Inspection is what the folder of an unfinished dataset has.
type Inspection struct {
	Header  Header // zero if it is lost
	Parts   int    // that are recorded
	Damages []error

	lines   []byte   // that can be read
	journal bool     // the journal is damaged
	files   []string // that are damaged
}

// Inspect reads all of a folder, and changes nothing.
func (f *Folder) Inspect() (found Inspection, err error) {
	names, err := disk.Names(f.In)
	if err != nil {
		return found, err
	}
	for _, name := range names {
		if name == logName || strings.HasSuffix(name, damagedSuffix) || strings.HasPrefix(name, ".") {
			continue
		}
		if _, err := f.Get(name); errors.Is(err, appendlog.ErrDamaged) {
			found.Damages, found.files = append(found.Damages, err), append(found.files, name)
		} else if err != nil {
			return found, err
		}
	}
	j := New(f)
	header, parts, err := j.Read()
	if err == nil && header.JobID == "" && len(names) > 0 && found.has(headerName) {
		err = appendlog.Missing(f.String())
	}
	found.Header, found.Parts = header, len(parts)
	if !errors.Is(err, appendlog.ErrDamaged) {
		return found, err
	}
	found.journal = true
	if !found.has(headerName) || !errors.Is(err, fs.ErrNotExist) {
		found.Damages = append(found.Damages, err)
	}
	return found, found.salvage(f)
}

func (i *Inspection) has(name string) bool {
	return slices.Contains(i.files, name)
}

// salvage reads what is whole of a damaged journal: its header, and as many parts as have whole records.
func (i *Inspection) salvage(f *Folder) error {
	i.Header, i.Parts = Header{}, 0
	var groups [][]byte
	first := false
	_, _, err := appendlog.Salvage(f.In, logName, appendlog.First, true, func(number int64, group []byte) error {
		first = first || number == 1
		groups = append(groups, group)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !first {
		header, err := f.Get(headerName)
		if err != nil {
			return nil // the run is lost
		}
		groups = append([][]byte{append(header, '\n')}, groups...)
	}
	for _, group := range groups {
		i.lines = append(i.lines, group...)
	}
	header, parts, err := decodeLines(i.lines)
	i.Header, i.Parts = header, len(parts)
	return err
}

// Repair sets damaged files aside, whose names it returns, and keeps what can be read of the journal. Parts
// that it loses are made again.
func (f *Folder) Repair() (setAside []string, err error) {
	found, err := f.Inspect()
	if err != nil || len(found.Damages) == 0 {
		return nil, err
	}
	if found.journal && found.Header.JobID == "" {
		return nil, fmt.Errorf("%w; the name under which its run has spent is lost, so it cannot be resumed: use --overwrite with another --name, and count what it has spent", errors.Join(found.Damages...))
	}
	aside := func(name string) error {
		err := f.In.Rename(name, name+damagedSuffix)
		if err == nil {
			setAside = append(setAside, f.In.Path(name+damagedSuffix))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	lists := false
	for _, name := range found.files {
		if name == headerName && !found.journal {
			found.lines, err = f.Read() // it has the header, too
			found.journal = err == nil
		}
		lists = lists || strings.HasPrefix(name, listsName)
		if strings.HasPrefix(name, foundPrefix) {
			found.journal = true // its part is made again
		}
		if err = errors.Join(err, aside(name)); err != nil {
			return setAside, err
		}
	}
	if lists {
		err = f.Drop(listsName, headerName) // the run keeps them again
	}
	if found.journal && err == nil {
		err = f.rewrite(found, aside)
	}
	return setAside, errors.Join(err, f.In.Sync())
}

// rewrite begins the journal anew with the parts that can be read, but for those of which what they found
// is lost.
func (f *Folder) rewrite(found Inspection, aside func(name string) error) error {
	if found.lines == nil {
		var err error
		if found.lines, err = f.Read(); err != nil {
			return err
		}
	}
	header, parts, err := decodeLines(found.lines)
	if err != nil {
		return err
	}
	for number := range parts {
		if found.has(foundName(number)) {
			delete(parts, number)
		}
	}
	if _, err := f.Read(); err != nil {
		if err := aside(logName); err != nil {
			return err
		}
	}
	j := New(f)
	j.run = header.Run // its verdicts stay
	return errors.Join(j.Begin(header, parts), j.Close())
}

// NightsFound are the lists of finished datasets in a state folder.
type NightsFound struct {
	Files   int
	Damages []error
	files   []string
}

// InspectNights reads all lists of finished datasets in the folder of a state.
func InspectNights(state disk.Folder) (found NightsFound, err error) {
	in := state.In(nightsFolder)
	names, err := disk.Names(in)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	for _, name := range names {
		if strings.HasSuffix(name, damagedSuffix) || atomicfile.IsTemp(name) {
			continue
		}
		found.Files++
		_, err := ReadNights(NightFile{in, name}, "")
		if errors.Is(err, appendlog.ErrDamaged) {
			found.Damages, found.files = append(found.Damages, err), append(found.files, name)
		} else if err != nil {
			return found, err
		}
	}
	return found, err
}

// RepairNights sets damaged lists aside, and returns their names.
func RepairNights(state disk.Folder) (setAside []string, err error) {
	found, err := InspectNights(state)
	in := state.In(nightsFolder)
	for _, name := range found.files {
		if err := in.Rename(name, name+damagedSuffix); err != nil {
			return setAside, err
		}
		setAside = append(setAside, in.Path(name+damagedSuffix))
	}
	if len(setAside) > 0 {
		err = errors.Join(err, in.Sync())
	}
	return setAside, err
}
