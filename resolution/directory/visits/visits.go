// Package visits keeps which people were seen from which IP address.
package visits

import (
	"encoding/binary"
	"math"
	"net/netip"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/resolution/directory/records"
)

// DefaultConfidence is that of a visit without one: even odds, because an address may be that
// of a household or an office.
const DefaultConfidence = 0.5

// maxVisits bounds the visits of an address.
const maxVisits = 16

// The fields of a record: an address, 4 or 16 bytes, and its visits.
const (
	address = iota
	seen
	fields
)

// Visit is a person who was seen from an address.
type Visit struct {
	NetworkURL string
	SeenAt     time.Time // UTC; zero if unknown
	Confidence float64   // 0 to 1
}

// File has the visits of an import. It is safe from many goroutines.
type File struct{ *records.File }

// Open opens a file of Import.
func Open(path string) (*File, error) {
	f, err := records.Open(path, fields)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// Visits lists the at most 16 visits of an address: the highest confidence first, of equals
// the most recent.
func (f *File) Visits(addr netip.Addr) (visits []Visit, err error) {
	defer columnfile.Guard(&err, debug.SetPanicOnFault(true))
	return f.Append(nil, addr, &records.Arena{}), nil
}

// Append appends the visits of an address, whose texts are in the arena. Call it under
// columnfile.Guard.
func (f *File) Append(to []Visit, addr netip.Addr, arena *records.Arena) []Visit {
	var raw [16]byte
	key := keyOf(addr, &raw)
	row := f.Find(unsafe.String(unsafe.SliceData(key), len(key)))
	if row == records.None {
		return to
	}
	var t [fields]string
	f.Read(row, arena, t[:])
	for text := t[seen]; text != ""; {
		var v Visit
		v, text = decode(text)
		to = append(to, v)
	}
	return to
}

func keyOf(addr netip.Addr, raw *[16]byte) []byte {
	if addr.Is4() {
		four := addr.As4()
		return append(raw[:0], four[:]...)
	}
	*raw = addr.As16()
	return raw[:]
}

// encode appends a visit: confidence, whether its time is known, the time in microseconds if
// it is, and the profile with its length.
func encode(to []byte, confidence float64, known bool, micros int64, networkURL []byte) []byte {
	to = binary.BigEndian.AppendUint64(to, math.Float64bits(confidence))
	to = append(to, 0)
	if known {
		to[len(to)-1] = 1
		to = binary.BigEndian.AppendUint64(to, uint64(micros))
	}
	to = binary.BigEndian.AppendUint32(to, uint32(len(networkURL)))
	return append(to, networkURL...)
}

// decode reads a visit of encode and returns the rest.
func decode(text string) (v Visit, rest string) {
	number := func(n int) (x uint64) {
		for i := range n {
			x = x<<8 | uint64(text[i])
		}
		text = text[n:]
		return x
	}
	v.Confidence = math.Float64frombits(number(8))
	if number(1) == 1 {
		v.SeenAt = time.UnixMicro(int64(number(8))).UTC()
	}
	n := number(4)
	v.NetworkURL = text[:n]
	return v, text[n:]
}
