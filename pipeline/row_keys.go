package pipeline

import (
	"net/netip"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

// rowKeys makes the keys of rows, as a run and its plan ask for them.
type rowKeys struct {
	columns  inputColumns
	keyer    keyer
	suppress *suppressor
}

func (d *decision) newRowKeys(suppress *suppressor) *rowKeys {
	job := d.run.Job
	return &rowKeys{d.columns, keyer{job.Operation, profile.Rules{Hosts: job.NetworkHosts}}, suppress}
}

// begin sets b to the rows of a batch.
func (k *rowKeys) begin(b *columns.Batch, in *sources.Batch) {
	b.Reset(in.Len())
	b.Source, b.Rows, b.Kept = in.Source, in.Rows, in.Columns[:k.columns.kept]
}

// fill sets b to the rows of a batch and their keys. Rows of listed people are
// suppressed.
func (k *rowKeys) fill(b *columns.Batch, in *sources.Batch) {
	k.begin(b, in)
	k.keyer.keys(b, in.Columns[k.columns.identifier])
	k.suppress.rows(b)
}

// keyer brings the identifiers of a batch into canonical form. What cannot be
// is rejected; its error text is the reason.
type keyer struct {
	operation resolution.Operation
	profiles  profile.Rules
}

// keys fills Keys, Outcomes and Reasons of b from the identifier column, and
// what else follows from the identifiers alone. A null is an empty cell.
func (k keyer) keys(b *columns.Batch, identifiers *array.String) {
	values, offsets := identifiers.ValueBytes(), identifiers.ValueOffsets()
	for i := range b.Len() {
		cell := values[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]]
		if err := k.append(b, cell); err != nil {
			b.Outcomes[i], b.Reasons[i] = outcome.Rejected, err.Error()
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

// distinctKeys are the distinct keys of a batch, and for each row which of them
// is its own: -1 for rows without a key, suppressed rows, and rows that asks
// rules out.
func distinctKeys(b *columns.Batch, asks func(i int) bool) (keys []string, question []int) {
	first := make(map[string]int, b.Len())
	question = make([]int, b.Len())
	for i, o := range b.Outcomes {
		question[i] = -1
		if o != outcome.Matched || !asks(i) {
			continue
		}
		q, seen := first[string(b.Keys.At(i))]
		if !seen {
			q = len(keys)
			key := string(b.Keys.At(i))
			first[key] = q
			keys = append(keys, key)
		}
		question[i] = q
	}
	return keys, question
}

// asks reports whether a service is asked about a row's key. It is not asked
// about addresses that are not public.
func asks(b *columns.Batch, i int) bool {
	if len(b.Addrs) == 0 {
		return true
	}
	if reason := neverAsked(b.Addrs[i]); reason != "" {
		b.Outcomes[i], b.Reasons[i] = outcome.NoMatch, reason
		return false
	}
	return true
}

// neverAsked is why an address is not asked about, "" when it is.
func neverAsked(addr netip.Addr) string {
	if _, ok := ipaddr.LookupAddr(addr); ok {
		return ""
	}
	return "ip_class:" + string(ipaddr.ClassOf(addr))
}
