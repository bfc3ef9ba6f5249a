// Package appendlog is a file that grows at its end by records, each whole or
// not there: what Append acknowledged is on disk, and what a crash cut off is
// left out when the log is read.
//
// The one thing to know before using it: an Append that failed left nothing
// behind, and the next may succeed, as when a full disk has space again.
package appendlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
)

// A record on disk is its length and its checksum, four bytes each and little
// endian, and then itself. The checksum is CRC-32C of the length's bytes and
// the record, so that a run of zeros is no record.
const headSize = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Storage is what a log is kept in: an *os.File, but that its Sync may leave
// out what is not needed to read the log.
type Storage interface {
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// ahead is how far the file grows at a time at most, in zeros; while it is
// small, it doubles. What is written over them changes no size, so that a sync is one write and not two: measured on
// ext4 with records of 4 kB, 0.10 ms instead of 0.18 to 0.28.
const ahead = 1 << 20

// Log is a log under construction. It is not safe from several goroutines.
type Log struct {
	to     Storage
	size   int64 // of the whole records
	grown  int64 // of the file: behind the records it is zeros
	torn   bool  // or was, before an Append that failed
	buffer []byte
}

// Create makes an empty log in place of whatever is there, readable for its
// owner alone. The folder is the caller's to sync.
func Create(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return New(File{f}), nil
}

// New makes a log in storage that is empty.
func New(to Storage) *Log { return &Log{to: to} }

// Size is how many bytes the records have.
func (l *Log) Size() int64 { return l.size }

// Append adds a record and returns when it is on disk.
func (l *Log) Append(record []byte) error {
	if len(record) > math.MaxInt32 {
		return errors.New("a record of 2 GiB or more")
	}
	if l.torn {
		if err := l.mend(); err != nil {
			return err
		}
	}
	l.buffer = append(l.buffer[:0], make([]byte, headSize)...)
	binary.LittleEndian.PutUint32(l.buffer, uint32(len(record)))
	binary.LittleEndian.PutUint32(l.buffer[4:], checksum(l.buffer[:4], record))
	l.buffer = append(l.buffer, record...)
	size := l.size + int64(len(l.buffer))
	if size > l.grown {
		l.buffer = append(l.buffer, make([]byte, min(size, ahead))...)
	}
	_, err := l.to.WriteAt(l.buffer, l.size)
	if err == nil {
		err = l.to.Sync()
	}
	if err != nil {
		l.torn = true
		return errors.Join(err, l.mend())
	}
	l.grown = max(l.grown, l.size+int64(len(l.buffer)))
	l.size = size
	if cap(l.buffer) > 1<<20 {
		l.buffer = nil // that of one large record is not kept for the small ones
	}
	return nil
}

// mend takes what a failed Append wrote off again.
func (l *Log) mend() error {
	if err := errors.Join(l.to.Truncate(l.size), l.to.Sync()); err != nil {
		return fmt.Errorf("take back what was not written whole: %w", err)
	}
	l.grown, l.torn = l.size, false
	return nil
}

// Close closes the file; the records stay.
func (l *Log) Close() error { return l.to.Close() }

func checksum(length, record []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, record)
}

// ErrDamaged says that a record that was acknowledged is no longer what it
// was.
var ErrDamaged = errors.New("a record is damaged")

// Read calls use for each whole record, in order. What a crash left of the
// last one was never acknowledged, and is passed over; where another record
// follows it, the log is ErrDamaged. The record is use's own.
func Read(path string, use func(record []byte) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for {
		record, rest, whole := cut(text)
		if !whole {
			if _, _, another := cut(rest); another {
				return fmt.Errorf("%w: and others follow it", ErrDamaged)
			}
			return nil
		}
		text = rest
		if err := use(record); err != nil {
			return err
		}
	}
}

// cut takes the first record off, whole or not; rest is empty where its end
// cannot be told.
func cut(text []byte) (record, rest []byte, whole bool) {
	if len(text) < headSize {
		return nil, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(text))
	if n > int64(len(text)-headSize) {
		return nil, nil, false
	}
	end := headSize + int(n)
	record = text[headSize:end:end]
	return record, text[end:], checksum(text[:4], record) == binary.LittleEndian.Uint32(text[4:])
}
