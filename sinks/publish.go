package sinks

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/sinks/place"
)

// successOf is the content of _SUCCESS: the checksum of the file that says what is in the folder.
func successOf(name string, data []byte) []byte {
	return fmt.Appendf(nil, "sha256 %x %s\n", sha256.Sum256(data), name)
}

// checkSuccess compares _SUCCESS with the manifest.
func checkSuccess(success, manifest []byte) error {
	if bytes.Equal(success, successOf(ManifestName, manifest)) {
		return nil
	}
	return fmt.Errorf("%s and %s do not belong together: one of them is %w", ManifestName, SuccessName, ErrCorrupt)
}

// Manifest reads the manifest of a finished dataset; nil without a manifest or _SUCCESS.
func (d *Dataset) Manifest() (*Manifest, error) {
	success, err := d.place.Read(place.SuccessName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	data, err := d.place.Read(ManifestName)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.place.Path(ManifestName), err)
	}
	if err := checkSuccess(success, data); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Dir(), err)
	}
	return m, nil
}

// UnfinishedManifest reads the manifest of a dataset without _SUCCESS; nil if there is
// none, or it cannot be read.
func (d *Dataset) UnfinishedManifest() (*Manifest, error) {
	m, err := ReadManifest(d)
	if _, broken := errors.AsType[*ManifestError](err); broken || errors.Is(err, ErrNoDataset) {
		return nil, nil
	}
	return m, err
}

// Publish removes files that are not in the manifest (Tidy), checks those that are, and writes
// the manifest and, at the end, _SUCCESS. A file that was removed, cut or replaced since it
// was recorded is ErrCorrupt; the dataset stays unfinished.
func (d *Dataset) Publish(m *Manifest) error {
	if err := m.Reconcile(); err != nil {
		return fmt.Errorf("totals do not add up: %w", err)
	}
	d.Refresh()
	if err := d.Tidy(m); err != nil {
		return err
	}
	if err := d.CheckFiles(m.Files()); err != nil {
		return err
	}
	return d.succeed(ManifestName, m)
}

// succeed writes what the files of the folder are, and _SUCCESS.
func (d *Dataset) succeed(name string, of any) error {
	data, err := d.describe(name, of)
	if err != nil {
		return err
	}
	return d.place.Write(place.SuccessName, successOf(name, data))
}

func (d *Dataset) describe(name string, of any) (data []byte, err error) {
	if data, err = json.MarshalIndent(of, "", "  "); err == nil {
		err = d.retract()
	}
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	return data, d.place.Write(name, data)
}

// retract removes _SUCCESS, if there is one. After a kill it must not be beside another description.
func (d *Dataset) retract() error {
	_, err := d.place.Read(place.SuccessName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = d.place.Remove(place.SuccessName)
	}
	return err
}

// Tidy removes files that the manifest does not list: temporary files, and parts of a
// killed run after the last one, which readers would load as data. It leaves partition
// folders of other columns alone.
func (d *Dataset) Tidy(m *Manifest) error {
	listed := map[string]bool{}
	for _, f := range m.Files() {
		listed[f.Name] = true
	}
	names, _, err := d.place.Files()
	if err != nil {
		return err
	}
	return d.place.Remove(slices.DeleteFunc(names, func(name string) bool {
		return listed[name] || place.IsReport(name) || clearRank(name) < 2 || !m.isInside(name)
	})...)
}

// isInside reports whether a file belongs to the dataset, and is not in a partition folder
// of another column.
func (m *Manifest) isInside(name string) bool {
	folder, _, nested := strings.Cut(name, "/")
	return !nested || isHidden(folder) || m.PartitionBy != "" && strings.HasPrefix(folder, m.PartitionBy+"=")
}

// Withdraw makes a finished dataset unfinished. It removes the report, then _SUCCESS, and
// then the manifest. The parts stay.
func (d *Dataset) Withdraw() error {
	for _, name := range slices.Concat(place.ReportNames, []string{place.SuccessName, ManifestName}) {
		if err := d.place.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// Clear removes every file of the dataset, _SUCCESS first, so that no reader counts the
// rest as complete.
func (d *Dataset) Clear() error {
	if err := d.refuseForeign(); err != nil {
		return err
	}
	names, _, err := d.place.Files()
	if err != nil {
		return err
	}
	var ranks [4][]string
	for _, name := range names {
		ranks[clearRank(name)] = append(ranks[clearRank(name)], name)
	}
	for _, names := range ranks {
		if err := d.place.Remove(names...); err != nil {
			return err
		}
	}
	return nil
}

func clearRank(name string) int {
	switch name {
	case place.SuccessName:
		return 0
	case ManifestName:
		return 1
	case place.ComparisonName: // while it is there, the other files are known to be of a comparison
		return 3
	}
	return 2
}
