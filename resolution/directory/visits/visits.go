// Package visits keeps which people were seen from which IP address.
package visits

import (
	"context"
	"encoding/binary"
	"math"
	"net/netip"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
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
type File struct{ *keyed.File }

// None is a file without visits.
var None = &File{keyed.Empty(fields)}

// Open opens a file of Import.
func Open(in disk.Folder, name string) (*File, error) {
	f, err := keyed.Open(in, name, fields)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// Verify is keyed.File.Verify. A record has all visits of an address, so their number is not known.
func (f *File) Verify(ctx context.Context) (keys, rows int64, err error) {
	keys, _, err = f.File.Verify(ctx)
	return keys, -1, err
}

// together is how many addresses are looked up at a time.
const together = 256

// AppendAll appends the at most 16 visits of each address, the highest confidence first, of
// equals the most recent. Their texts are in the arena. It sets ends to the end of those of each.
// The zero address has none. Call it under keyed.Guard.
func (f *File) AppendAll(to []Visit, addrs []netip.Addr, arena *keyed.Arena, ends []int) []Visit {
	var raw [together][16]byte
	var keys [together]string
	var rows [together]uint32
	for from := 0; from < len(addrs); from += together {
		n := min(together, len(addrs)-from)
		for i, addr := range addrs[from : from+n] {
			if keys[i] = ""; addr.IsValid() {
				keys[i] = keyOf(addr, &raw[i])
			}
		}
		f.FindAll(keys[:n], rows[:n])
		for i, row := range rows[:n] {
			if row != keyed.None {
				to = f.append(to, row, arena)
			}
			ends[from+i] = len(to)
		}
	}
	return to
}

// append appends the visits of a row.
func (f *File) append(to []Visit, row uint32, arena *keyed.Arena) []Visit {
	var t [fields]string
	f.Read(row, arena, t[:])
	for text := t[seen]; text != ""; {
		var v Visit
		v, text = decode(text)
		to = append(to, v)
	}
	return to
}

// keyOf is the key of an address, in the memory of raw.
func keyOf(addr netip.Addr, raw *[16]byte) string {
	n := len(raw)
	if addr.Is4() {
		four := addr.As4()
		n = copy(raw[:], four[:])
	} else {
		*raw = addr.As16()
	}
	return unsafe.String(&raw[0], n)
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

// Records is the number of addresses.
func (f *File) Records() int { return f.Rows() }

// Identify gives use an address and the profiles that were seen from it.
func (f *File) Identify(record int, use func(resolution.Identifier, string)) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	var arena keyed.Arena
	var t [fields]string
	f.Read(uint32(record), &arena, t[:])
	if addr, ok := netip.AddrFromSlice([]byte(t[address])); ok {
		use(resolution.IP, addr.String())
	}
	for text := t[seen]; text != ""; {
		var v Visit
		v, text = decode(text)
		use(resolution.NetworkURL, v.NetworkURL)
	}
	return nil
}
