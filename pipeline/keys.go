package pipeline

import (
	"errors"
	"net/netip"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

var errEmpty = errors.New("empty")

// keyer brings the identifiers of a batch into canonical form. What cannot be
// is rejected; its error text is the reason.
type keyer struct {
	operation resolution.Operation
	profiles  profile.Rules
}

// keys fills Keys, Outcomes and Reasons of b from the identifier column, and
// what else follows from the identifiers alone.
func (k keyer) keys(b *columns.Batch, identifiers *array.String) {
	cells := cellsOf(identifiers)
	for i := range b.Len() {
		cell, null := cells.at(i)
		err := errEmpty
		if !null {
			err = k.append(b, cell)
		} else {
			k.pad(b)
		}
		if err != nil {
			b.Outcomes[i], b.Reasons[i] = columns.Rejected, err.Error()
		}
		b.Keys.End()
	}
}

func (k keyer) append(b *columns.Batch, cell []byte) (err error) {
	switch k.operation.Identifier() {
	case resolution.Email:
		var a email.Address
		if a, err = email.Parse(cell); err == nil {
			b.Keys.Data = a.AppendKey(b.Keys.Data)
		}
		b.Emails = append(b.Emails, a)
	case resolution.NetworkURL:
		var key string
		if key, err = k.profiles.ParsePerson(unsafe.String(unsafe.SliceData(cell), len(cell))); err == nil {
			b.Keys.Data = append(b.Keys.Data, key...)
		}
	case resolution.IP:
		addr, parseErr := ipaddr.ParseBytes(cell)
		class := ""
		if err = parseErr; err == nil {
			b.Keys.Data = addr.AppendTo(b.Keys.Data)
			class = string(ipaddr.ClassOf(addr))
		}
		b.Addrs = append(b.Addrs, addr)
		b.IPClasses = append(b.IPClasses, class)
	}
	return err
}

// pad keeps the slices that run beside the rows aligned at a null cell.
func (k keyer) pad(b *columns.Batch) {
	switch k.operation.Identifier() {
	case resolution.Email:
		b.Emails = append(b.Emails, email.Address{})
	case resolution.IP:
		b.Addrs = append(b.Addrs, netip.Addr{})
		b.IPClasses = append(b.IPClasses, "")
	}
}

// cells reads a string array without a call and a string header per value.
type cells struct {
	values  []byte
	offsets []int32
	nulls   arrow.Array // nil when there are none
}

func cellsOf(a *array.String) cells {
	c := cells{values: a.ValueBytes(), offsets: a.ValueOffsets()}
	if a.NullN() > 0 {
		c.nulls = a
	}
	return c
}

func (c *cells) at(i int) (cell []byte, null bool) {
	base := c.offsets[0]
	return c.values[c.offsets[i]-base : c.offsets[i+1]-base], c.nulls != nil && c.nulls.IsNull(i)
}
