package columns

import (
	"encoding/base64"
	"encoding/hex"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
)

// profiles are the profiles with columns beside plain, in column order.
var profiles = []email.Profile{email.UID2, email.Google}

// digest is one of the digests of profile plain.
type digest struct {
	name string
	kind email.Kind
	hex  int // characters
}

var digests = []digest{{"md5", email.MD5, 32}, {"sha1", email.SHA1, 40}, {"sha256", email.SHA256, 64}}

// hemFiller builds hem_md5, hem_sha1 and hem_sha256. If the keys are email addresses, it
// hashes the whole batch at once; else it uses the first hash of each type among the
// hashed emails of a lead.
type hemFiller struct {
	emails  bool // keys are emails, or digests of them
	digests []digest
	texts   texts
	hashes  [3]Strings // by position in digests; one value for each row
	columns [3]Strings // the same with rows left out or replaced
}

func newHEMFiller(s Settings) *hemFiller {
	f := &hemFiller{emails: s.Operation == resolution.EmailToHEM}
	for _, d := range digests {
		if slices.Contains(s.HEMTypes, d.name) {
			f.digests = append(f.digests, d)
		}
	}
	f.texts = newTexts(len(f.digests))
	return f
}

func (f *hemFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	if b.People != nil {
		return f.people(b.People, to)
	}
	if b.Leads == nil || f.emails && b.Receipts != nil {
		return f.fromKeys(b, to)
	}
	f.texts.start(b.Len())
	for i := range b.Len() {
		lead := b.lead(i)
		for j, d := range f.digests {
			f.texts[j].append(d.first(lead))
		}
	}
	return f.texts.finish(to)
}

// first returns the first hash of a lead of the type of the digest, or "".
func (d digest) first(l *resolution.Lead) string {
	for _, h := range l.HashedEmails {
		if h.Type == d.name {
			return h.Email
		}
	}
	return ""
}

// fromKeys hashes the keys, whatever the answers are. For a key that is a digest, the
// other digests are those that a service found. Digests of a type have one width, so
// the buffers are filled in place and the offsets are known.
func (f *hemFiller) fromKeys(b *Batch, to []arrow.Array) []arrow.Array {
	var out [3][]byte // md5, sha1, sha256; nil if it is not wanted
	for j, d := range f.digests {
		f.hashes[j].stretch(b.Len(), d.hex)
		out[slices.Index(HEMTypes, d.name)] = f.hashes[j].Data
	}
	hashlanes.Hex(out[0], out[1], out[2], b.Keys.Data, b.Keys.Offsets)

	regular := !slices.ContainsFunc(b.Emails, func(a email.Address) bool { return a.Kind() != email.Plaintext })
	regular = regular && !slices.Contains(b.Outcomes, outcome.Rejected) && !slices.Contains(b.Outcomes, outcome.Suppressed)
	for j, d := range f.digests {
		if regular {
			to = append(to, f.hashes[j].array(nil))
			continue
		}
		column := &f.columns[j]
		column.Reset()
		for i := range b.Len() {
			switch {
			case b.keyless(i):
			case b.Emails[i].Kind() == email.Plaintext:
				column.Data = append(column.Data, f.hashes[j].At(i)...)
			case b.Emails[i].Kind() == d.kind: // it passes through, and is never hashed again
				column.Data = append(column.Data, b.Keys.At(i)...)
			default:
				column.Data = append(column.Data, d.first(b.lead(i))...)
			}
			column.End()
		}
		to = append(to, column.array(func(i int) bool { return len(column.At(i)) > 0 }))
	}
	return to
}

// stretch makes room for n values of one width.
func (s *Strings) stretch(n, width int) {
	if cap(s.Data) < n*width {
		s.Data = make([]byte, n*width)
	}
	s.Data = s.Data[:n*width]
	for i := len(s.Offsets); i <= n; i++ {
		s.Offsets = append(s.Offsets, int32(i*width))
	}
	s.Offsets = s.Offsets[:n+1]
}

// profileFiller builds the hashes of the profiles beside plain. They follow from the
// address alone.
type profileFiller struct {
	profiles []email.Profile
	forms    Strings
	sums     []byte
	column   Strings
	missing  []bool
}

func newProfileFiller(s Settings) *profileFiller {
	f := &profileFiller{}
	for _, p := range profiles {
		if slices.Contains(s.HEMProfiles, p) {
			f.profiles = append(f.profiles, p)
		}
	}
	return f
}

func (f *profileFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	n := b.Len()
	for _, p := range f.profiles {
		f.forms.Reset()
		f.missing = resize(f.missing, n)
		for i := range n {
			ok := false
			if !b.keyless(i) {
				f.forms.Data, ok = b.Emails[i].AppendForm(f.forms.Data, p)
			}
			f.missing[i] = !ok
			f.forms.End()
		}
		f.sums = resize(f.sums, n*32)
		hashlanes.SHA256(f.sums, f.forms.Data, f.forms.Offsets)
		f.column.Reset()
		for i := range n {
			if !f.missing[i] {
				f.column.Data = appendProfileHash(f.column.Data, p, f.sums[i*32:i*32+32])
			}
			f.column.End()
		}
		column := f.column.array(func(i int) bool { return !f.missing[i] })
		f.column = Strings{} // the array keeps this memory; the next profile needs its own
		to = append(to, column)
	}
	return to
}

// appendProfileHash writes a SHA-256 digest as the platforms of a profile need it:
// base64 for UID2, hex for the others.
func appendProfileHash(to []byte, p email.Profile, sum []byte) []byte {
	if p == email.UID2 {
		return base64.StdEncoding.AppendEncode(to, sum)
	}
	return hex.AppendEncode(to, sum)
}

// pairsBuilder builds a LIST<STRUCT<value, type>> column; a row without pairs
// is null. Its memory is used again for the next batch.
type pairsBuilder struct {
	kind   *arrow.ListType
	ends   []int32 // of the rows' pairs
	valid  []byte  // bitmap of rows
	nulls  int
	first  Strings
	second textColumn
	n      int // pairs
}

func newPairsBuilder(t *arrow.ListType) *pairsBuilder { return &pairsBuilder{kind: t} }

// start makes ready for n rows with so many pairs at most.
func (b *pairsBuilder) start(rows, pairs int) {
	b.ends = append(b.ends[:0], 0)
	b.valid = resize(b.valid, int(bitutil.BytesForBits(int64(rows))))
	b.nulls, b.n = 0, 0
	b.first.Reset()
	b.second.start(pairs)
}

func (b *pairsBuilder) add(value, kind string) {
	b.first.Data = append(b.first.Data, value...)
	b.first.End()
	b.second.append(kind)
	b.n++
}

// end ends a row.
func (b *pairsBuilder) end() {
	if row := len(b.ends) - 1; b.n > int(b.ends[row]) {
		bitutil.SetBit(b.valid, row)
	} else {
		b.nulls++
	}
	b.ends = append(b.ends, int32(b.n))
}

func (b *pairsBuilder) finish() arrow.Array {
	first, second := b.first.over(nil, 0), b.second.finish()
	pairs := array.NewData(b.kind.Elem(), b.n, []*memory.Buffer{nil}, []arrow.ArrayData{first.Data(), second.Data()}, 0, 0)
	list := array.NewData(b.kind, len(b.ends)-1, []*memory.Buffer{memory.NewBufferBytes(b.valid), memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(b.ends))}, []arrow.ArrayData{pairs}, b.nulls, 0)
	defer func() { first.Release(); second.Release(); pairs.Release(); list.Release() }()
	return array.NewListData(list)
}

// hashedEmailsFiller builds hashed_emails.
type hashedEmailsFiller struct{ pairs *pairsBuilder }

func newHashedEmailsFiller() *hashedEmailsFiller {
	return &hashedEmailsFiller{newPairsBuilder(hashedEmailsType)}
}

func (f *hashedEmailsFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	if b.People != nil {
		return f.people(b.People, to)
	}
	pairs := 0
	for i := range b.Len() {
		pairs += len(b.lead(i).HashedEmails)
	}
	f.pairs.start(b.Len(), pairs)
	for i := range b.Len() {
		for _, h := range b.lead(i).HashedEmails {
			f.pairs.add(h.Email, h.Type)
		}
		f.pairs.end()
	}
	return append(to, f.pairs.finish())
}
