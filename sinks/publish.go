package sinks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Manifest reads the manifest of a finished dataset; nil when the folder
// holds none, or holds one without _SUCCESS.
func (d *Dataset) Manifest() (*Manifest, error) {
	if _, err := os.Stat(filepath.Join(d.dir, successName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(d.dir, ManifestName))
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(d.dir, ManifestName), err)
	}
	return m, nil
}

// Publish removes what is not of the manifest (Tidy), writes the manifest and,
// last of all, _SUCCESS.
func (d *Dataset) Publish(m *Manifest) error {
	if err := m.Reconcile(); err != nil {
		return fmt.Errorf("totals do not add up: %w", err)
	}
	if err := d.Tidy(m); err != nil {
		return err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(d.dir, ManifestName), append(data, '\n')); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(d.dir, successName), nil)
}

// Tidy removes the files that are not of the manifest, which a reader of all
// part-*.parquet would take for more rows: parts a killed run left beyond the
// last, temporary files.
func (d *Dataset) Tidy(m *Manifest) error {
	listed := map[string]bool{}
	for _, p := range m.Parts {
		listed[filepath.FromSlash(p.Name)] = true
		if p.Rejects != nil {
			listed[filepath.FromSlash(p.Rejects.Name)] = true
		}
	}
	names, _, err := d.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !listed[name] && !isReport(name) && clearRank(name) == 2 {
			if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
				return err
			}
		}
	}
	return d.syncFolders()
}

// syncFolders makes removals durable, and removes the folder of rejects when
// nothing is in it.
func (d *Dataset) syncFolders() error {
	rejects := filepath.Join(d.dir, rejectsFolder)
	if err := os.Remove(rejects); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.SyncDir(rejects); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(d.dir)
}

// Withdraw makes a finished dataset unfinished: the report that says it is
// finished goes, then _SUCCESS, then the manifest. The parts stay.
func (d *Dataset) Withdraw() error {
	for _, name := range slices.Concat(reportNames, []string{successName, ManifestName}) {
		if err := os.Remove(filepath.Join(d.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := atomicfile.SyncDir(d.dir); err != nil {
			return err
		}
	}
	return nil
}

// Clear removes every file of the dataset, _SUCCESS first, so that no reader
// takes what remains for a whole.
func (d *Dataset) Clear() error {
	if err := d.refuseForeign(); err != nil {
		return err
	}
	names, _, err := d.files()
	if err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b string) int { return clearRank(a) - clearRank(b) })
	for _, name := range names {
		if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
			return err
		}
		if clearRank(name) < 2 {
			if err := atomicfile.SyncDir(d.dir); err != nil {
				return err
			}
		}
	}
	return d.syncFolders()
}

func clearRank(name string) int {
	switch name {
	case successName:
		return 0
	case ManifestName:
		return 1
	}
	return 2
}
