// Package appendlog is a file of records that only grows. When Append returns,
// the whole record is on disk. A record that a crash cut off is skipped when the
// log is read.
//
// The one thing to know before using it: an Append that failed leaves nothing
// behind, and the next one may succeed, for example when a full disk has space
// again.
package appendlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/leadetl/leadetl/internal/checksum"
	"github.com/leadetl/leadetl/internal/disk"
)

// On disk, a record follows its length and its checksum, four bytes each and
// little endian. The checksum is the CRC-32C of the length's bytes and the
// record, so that zeros are not a record.
const headerSize = 8

// maxGrowth is how many bytes of zeros the file grows by at most; a small file
// doubles. A record that is written over zeros does not change the file's size,
// so a sync is one write instead of two: with records of 4 kB on ext4, 0.10 ms
// instead of 0.18 to 0.28.
//
// Reusing old files would save the zeros, but not time: the median of a sync
// stays at 0.12 ms. Only the writes that grow the file get faster: with records
// of 20 to 60 kB, 0.4 ms instead of 2. Records of 4 kB, where one write in 256
// grows the file, showed no clear difference.
const maxGrowth = 1 << 20

// Log is a log under construction. It is not safe from several goroutines.
type Log struct {
	to     disk.File
	size   int64 // of the records
	grown  int64 // of the file; zeros follow the records
	torn   bool  // a failed Append may have left something behind
	buffer []byte
}

// New makes a log in an empty file, which it uses in the goroutine of its owner.
func New(to disk.File) *Log { return &Log{to: to} }

// Size is the size of the records on disk, in bytes.
func (l *Log) Size() int64 { return l.size }

// Append adds a record and returns when it is on disk.
func (l *Log) Append(record []byte) error {
	if len(record) > math.MaxInt32 {
		return errors.New("a record is larger than 2 GiB")
	}
	if l.torn {
		if err := l.repair(); err != nil {
			return err
		}
	}
	l.buffer = append(l.buffer[:0], make([]byte, headerSize)...)
	binary.LittleEndian.PutUint32(l.buffer, uint32(len(record)))
	binary.LittleEndian.PutUint32(l.buffer[4:], checksum.Of(l.buffer[:4], record))
	l.buffer = append(l.buffer, record...)
	size := l.size + int64(len(l.buffer))
	if size > l.grown {
		l.buffer = append(l.buffer, make([]byte, min(size, maxGrowth))...)
	}
	_, err := l.to.WriteAt(l.buffer, l.size)
	if err == nil {
		err = l.to.Sync()
	}
	if err != nil {
		l.torn = true
		return errors.Join(err, l.repair())
	}
	l.grown = max(l.grown, l.size+int64(len(l.buffer)))
	l.size = size
	if cap(l.buffer) > 1<<20 {
		l.buffer = nil // do not keep the buffer of one large record
	}
	return nil
}

// repair removes what a failed Append wrote.
func (l *Log) repair() error {
	if err := errors.Join(l.to.Truncate(l.size), l.to.Sync()); err != nil {
		return fmt.Errorf("remove an incomplete record: %w", err)
	}
	l.grown, l.torn = l.size, false
	return nil
}

// Close closes the file; the records stay.
func (l *Log) Close() error { return l.to.Close() }

// ErrDamaged means that a complete record has changed on disk.
var ErrDamaged = errors.New("a record is damaged")

// Read calls use for each record, in order; use may keep it. An incomplete last
// record is skipped, because its Append never returned. If another record
// follows an incomplete one, the error is ErrDamaged.
func Read(from disk.Folder, name string, use func(record []byte) error) error {
	text, err := from.ReadFile(name)
	if err != nil {
		return err
	}
	for {
		record, rest, complete := cut(text)
		if !complete {
			if _, _, another := cut(rest); another {
				return fmt.Errorf("%w: other records follow it", ErrDamaged)
			}
			return nil
		}
		text = rest
		if err := use(record); err != nil {
			return err
		}
	}
}

// cut splits off the first record, complete or not. rest is empty if the end of
// the record is unknown.
func cut(text []byte) (record, rest []byte, complete bool) {
	if len(text) < headerSize {
		return nil, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(text))
	if n > int64(len(text)-headerSize) {
		return nil, nil, false
	}
	end := headerSize + int(n)
	record = text[headerSize:end:end]
	return record, text[end:], checksum.Of(text[:4], record) == binary.LittleEndian.Uint32(text[4:])
}
