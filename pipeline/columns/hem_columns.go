package columns

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/hashed"
	"github.com/leadetl/leadetl/transforms/phone"
)

// digest is one of the digests of profile plain.
type digest struct {
	name, algorithm string
	kind            email.Kind
	hex             int // characters
}

// digests are those of the columns in values.Hashes.
var digests = []digest{{"md5", "MD5", email.MD5, 32}, {"sha1", "SHA-1", email.SHA1, 40}, {"sha256", "SHA-256", email.SHA256, 64}}

// hemFiller builds hem_md5, hem_sha1 and hem_sha256. If the keys are email addresses, it
// hashes the whole batch at once; else it uses the first hash of each type among the
// hashed emails of an answer.
type hemFiller struct {
	emails  bool // keys are emails, or digests of them
	remote  bool // a service answers
	digests []digest
	texts   texts
	columns [3]resolution.Texts // digests of keys with rows left out or replaced
}

func newHEMFiller(s Settings) *hemFiller {
	f := &hemFiller{emails: s.hashesKeys(), remote: s.Remote}
	for _, d := range digests {
		if slices.Contains(s.HEMTypes, d.name) {
			f.digests = append(f.digests, d)
		}
	}
	f.texts = newTexts(len(f.digests))
	return f
}

func (f *hemFiller) fill(b *Batch, to *blocks) {
	if f.emails {
		f.fromKeys(b, to)
		return
	}
	for j, d := range f.digests {
		to.add(func() arrow.Array {
			column := &f.texts[j]
			column.start(b.Len())
			for i := range b.Len() {
				column.append(d.first(b.Answers, i))
			}
			return column.finish()
		})
	}
}

// first returns the first hash of an answer of the type of the digest, nil without one.
func (d digest) first(a *resolution.Answers, i int) []byte {
	for n, to := a.Hashes.Of(i); n < to; n++ {
		if string(a.Hashes.Types.At(n)) == d.name {
			return a.Hashes.Texts.At(n)
		}
	}
	return nil
}

// HashKeys makes the digests of the keys that are columns. A Builder does it if it was not
// done before, so that another goroutine can.
func (l *Layout) HashKeys(b *Batch) {
	if !l.settings.hashesKeys() || b.hashed {
		return
	}
	var out [3][]byte // nil if it is not written
	for j, d := range digests {
		if l.Writes("hem_" + d.name) {
			stretch(&b.hashes[j], b.Len(), d.hex)
			out[j] = b.hashes[j].Data
		}
	}
	hashlanes.Hex(out[0], out[1], out[2], b.Keys.Data, b.Keys.Offsets)
	b.hashed = true
}

// fromKeys builds the columns from the digests of the keys, whatever the answers are, but for
// keys that are digests.
func (f *hemFiller) fromKeys(b *Batch, to *blocks) {
	regular := !slices.ContainsFunc(b.Emails, func(a email.Address) bool { return a.Kind() != email.Plaintext })
	regular = regular && !slices.Contains(b.Outcomes, outcome.Rejected) && !slices.Contains(b.Outcomes, outcome.Suppressed)
	for _, d := range f.digests {
		to.add(func() arrow.Array {
			if regular {
				return stringArray(b.hashesOf(d), nil)
			}
			return f.irregular(b, d)
		})
	}
}

// irregular is the column of a digest where some keys are digests, or have none.
func (f *hemFiller) irregular(b *Batch, d digest) arrow.Array {
	column, hashes := &f.columns[slices.Index(f.digests, d)], b.hashesOf(d)
	column.Reset()
	for i := range b.Len() {
		switch {
		case b.keyless(i):
		case b.Emails[i].Kind() == email.Plaintext:
			column.Data = append(column.Data, hashes.At(i)...)
		default:
			column.Data = append(column.Data, f.ofDigest(b, i, d)...)
		}
		column.End()
	}
	return textArray(column)
}

// ofDigest returns a digest of a row whose key is a digest. That of a service's row passes
// through, and is never hashed again. The directory may know the address behind it, of
// which it may be the digest in another profile.
func (f *hemFiller) ofDigest(b *Batch, i int, d digest) []byte {
	hash := d.first(b.Answers, i)
	if b.Emails[i].Kind() == d.kind && (f.remote || len(hash) == 0) {
		return b.Keys.At(i)
	}
	return hash
}

// hashesOf are the digests of the keys of a type.
func (b *Batch) hashesOf(d digest) *resolution.Texts { return &b.hashes[slices.Index(digests, d)] }

// stretch makes room for n values of one width, which are filled in place: their offsets are
// known.
func stretch(s *resolution.Texts, n, width int) {
	if cap(s.Data) < n*width {
		s.Data = make([]byte, n*width)
	}
	s.Data = s.Data[:n*width]
	for i := len(s.Offsets); i <= n; i++ {
		s.Offsets = append(s.Offsets, int32(i*width))
	}
	s.Offsets = s.Offsets[:n+1]
}

// profileFiller builds the hashes of profiles. Those of emails follow from the address alone.
type profileFiller struct {
	profiles []hashed.Profile
	forms    resolution.Texts
	sums     []byte
	column   resolution.Texts
	missing  []bool
}

func (f *profileFiller) fill(b *Batch, to *blocks) {
	for _, p := range f.profiles {
		to.add(func() arrow.Array { return f.hashes(b, p) })
	}
}

// hashes is the column of a profile.
func (f *profileFiller) hashes(b *Batch, p hashed.Profile) arrow.Array {
	n := b.Len()
	f.forms.Reset()
	f.missing = resize(f.missing, n)
	for i := range n {
		ok := false
		switch {
		case p.Kind == hashed.Phone:
			number := b.Answers.Texts[resolution.FieldPhone].At(i)
			form := phone.Number{E164: unsafe.String(unsafe.SliceData(number), len(number))}.Form(p.Phone)
			f.forms.Data, ok = append(f.forms.Data, form...), form != ""
		case !b.keyless(i):
			f.forms.Data, ok = b.Emails[i].AppendForm(f.forms.Data, p.Email)
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
	column := stringArray(&f.column, func(i int) bool { return !f.missing[i] })
	f.column = resolution.Texts{} // the array keeps this memory; the next profile needs its own
	return column
}

// appendProfileHash writes a SHA-256 digest as the platforms of a profile need it.
func appendProfileHash(to []byte, p hashed.Profile, sum []byte) []byte {
	if p.Base64() {
		return base64.StdEncoding.AppendEncode(to, sum)
	}
	return hex.AppendEncode(to, sum)
}
