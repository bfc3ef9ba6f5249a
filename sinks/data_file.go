package sinks

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sinks/typed"
)

// DataFile is a file of a dataset whose values are read. The caller closes Opened.
type DataFile struct {
	*typed.File
	Opened *OpenFile
}

// Opener opens the files of a dataset.
type Opener interface {
	Open(name string) (*OpenFile, error)
	Path(name string) string // for users
}

// OpenData opens a file of the dataset, with these columns. The error is a *typed.Error if the file is
// missing, or is not what the manifest says.
func (m *Manifest) OpenData(files Opener, f File, columns []Column) (d *DataFile, err error) {
	opened, err := files.Open(f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &typed.Error{File: files.Path(f.Name), Err: errors.New("the manifest lists it, but it is not there")}
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	d = &DataFile{Opened: opened}
	if d.File, err = typed.Open(files.Path(f.Name), opened, opened.Size); err != nil {
		return nil, err
	}
	if d.InPath, err = m.inPath(f.Name); err != nil {
		return nil, err
	}
	return d, d.Expect(f.Rows, columns)
}

// AllColumns are the columns of the rows: those in the files, and then PathColumns.
func (m *Manifest) AllColumns() []Column { return append(slices.Clone(m.Schema), m.PathColumns()...) }

// PathColumns are the columns that are in the paths of files and not in the files.
func (m *Manifest) PathColumns() (columns []Column) {
	for _, p := range m.Partitions {
		columns = append(columns, schema.New(p.Name, arrow.BinaryTypes.String, true))
	}
	if m.PartitionBy != "" {
		columns = append(columns, schema.New(m.PartitionBy, arrow.BinaryTypes.String, true))
	}
	return columns
}

// inPath are the values of PathColumns in the path of a file; nil is null.
func (m *Manifest) inPath(name string) (map[string]*string, error) {
	values := map[string]*string{}
	for _, p := range m.Partitions {
		values[p.Name] = &p.Value
	}
	if m.PartitionBy == "" {
		return values, nil
	}
	values[m.PartitionBy] = nil
	for _, folder := range strings.Split(path.Dir(name), "/") {
		if escaped, ok := strings.CutPrefix(folder, m.PartitionBy+"="); ok && escaped != schema.DefaultPartition {
			value, err := schema.Unescape(escaped)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			values[m.PartitionBy] = &value
		}
	}
	return values, nil
}
