package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const magic = "PAR1"

// maxFooter bounds the footer, which is read as a whole.
const maxFooter = 64 << 20

var errFooter = errors.New("its footer is cut or damaged")

// readFooter reads and checks the metadata at the end of a file.
func readFooter(in io.ReaderAt, size int64) (*format.FileMetaData, error) {
	var tail [8]byte
	if size < int64(len(magic)+len(tail)) {
		return nil, errFooter
	}
	if _, err := in.ReadAt(tail[:], size-int64(len(tail))); err != nil && err != io.EOF {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if string(tail[4:]) != magic || length > size-int64(len(tail)) || length > maxFooter {
		return nil, errFooter
	}
	data := make([]byte, length)
	if _, err := in.ReadAt(data, size-int64(len(tail))-length); err != nil && err != io.EOF {
		return nil, err
	}
	meta := new(format.FileMetaData)
	if _, err := decodeThrift(data, meta); err != nil {
		return nil, fmt.Errorf("%w: %w", errFooter, err)
	}
	return meta, nil
}

// decodeThrift decodes a value and returns how many bytes it took.
func decodeThrift(data []byte, value any) (int, error) {
	r := boundedReader{new(thrift.CompactProtocol).NewReaderFromBytes(data), len(data)}
	err := thrift.NewDecoder(r).Decode(value)
	return r.BytesRead(), err
}

// boundedReader refuses lists that are longer than the remaining bytes, because
// memory for a list is allocated before it is read.
type boundedReader struct {
	thrift.BytesReader
	size int
}

func (r boundedReader) ReadList() (thrift.List, error) {
	l, err := r.BytesReader.ReadList()
	if err == nil && int(l.Size) > r.size-r.BytesRead() {
		err = io.ErrUnexpectedEOF
	}
	return l, err
}

func (r boundedReader) ReadSet() (thrift.Set, error) {
	l, err := r.ReadList()
	return thrift.Set(l), err
}

func (r boundedReader) ReadMap() (thrift.Map, error) {
	m, err := r.BytesReader.ReadMap()
	if err == nil && int(m.Size) > r.size-r.BytesRead() {
		err = io.ErrUnexpectedEOF
	}
	return m, err
}

// errCounts means that the footer contradicts itself.
var errCounts = errors.New("its footer contradicts itself")

// checkCounts compares the row count of a footer with those of its row groups,
// and these with the value counts of their columns. Without the check, a footer
// with zero rows would hide the rows of a file.
func checkCounts(meta *format.FileMetaData, leaves []*element) error {
	sum := int64(0)
	for i, group := range meta.RowGroups {
		if group.NumRows < 0 || len(group.Columns) != len(leaves) {
			return fmt.Errorf("%w: row group %d has %d rows and %d columns", errCounts, i+1, group.NumRows, len(group.Columns))
		}
		sum += group.NumRows
		for j, chunk := range group.Columns {
			if len(chunk.EncryptedColumnMetadata) > 0 {
				continue // the column may not be selected
			}
			values := chunk.MetaData.NumValues
			if values < group.NumRows || values > group.NumRows && (group.NumRows == 0 || leaves[j].repeated == 0) {
				return fmt.Errorf("%w: row group %d has %d rows, but %d values in column %d", errCounts, i+1, group.NumRows, values, j+1)
			}
		}
	}
	if sum != meta.NumRows {
		return fmt.Errorf("%w: it says %d rows, its row groups have %d", errCounts, meta.NumRows, sum)
	}
	return nil
}

// geometries returns the columns with shapes in binary whose type does not say
// so. Source: GeoParquet 1.1, "File metadata".
func geometries(meta *format.FileMetaData) map[string]bool {
	shapes := map[string]bool{}
	for _, pair := range meta.KeyValueMetadata {
		var geo struct {
			Columns map[string]struct {
				Encoding string `json:"encoding"`
			} `json:"columns"`
		}
		if pair.Key != "geo" || json.Unmarshal([]byte(pair.Value), &geo) != nil {
			continue // then it is not GeoParquet, whatever the key says
		}
		for name, column := range geo.Columns {
			shapes[name] = column.Encoding == "WKB"
		}
	}
	return shapes
}

// element is a node of the schema, with its levels.
type element struct {
	*format.SchemaElement
	children          []*element
	index             int // of a leaf, in the row groups
	defined, repeated int
}

// schemaOf makes a tree from the elements. A file lists each group before its
// members.
func schemaOf(all []format.SchemaElement) (root *element, leaves []*element, err error) {
	const maxDepth = 100
	at := 0
	var take func(depth, defined, repeated int) (*element, error)
	take = func(depth, defined, repeated int) (*element, error) {
		if at == len(all) || depth > maxDepth {
			return nil, errFooter
		}
		e := &element{SchemaElement: &all[at]}
		at++
		if depth > 0 {
			switch e.RepetitionType.V {
			case format.Optional:
				defined++
			case format.Repeated:
				defined, repeated = defined+1, repeated+1
			}
		}
		e.defined, e.repeated = defined, repeated
		if e.Type.Valid {
			e.index = len(leaves)
			leaves = append(leaves, e)
			return e, nil
		}
		for range e.NumChildren.V {
			child, err := take(depth+1, defined, repeated)
			if err != nil {
				return nil, err
			}
			e.children = append(e.children, child)
		}
		return e, nil
	}
	if root, err = take(0, 0, 0); err == nil && at != len(all) {
		err = errFooter
	}
	return root, leaves, err
}
