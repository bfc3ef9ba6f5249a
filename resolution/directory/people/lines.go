package people

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/email"
)

// lines are parsed lines of people, with all that can be computed without other lines. Their
// memory is used again: a value for each cell and each digest would cost more than the rest.
type lines struct {
	cells   []byte // as imports.AppendCells appends them, in canonical form
	details []byte // the cells of phoneDetails. They follow from the others and the rules, so cells, which identify the content, have none
	count   uint32
	digests []digestHash

	// addresses are emails that have one form. Their digests are computed together.
	addresses         []byte
	ends              []int32  // of addresses
	people            []uint32 // their lines
	md5, sha1, sha256 []byte

	emails, phones list // of the line that is parsed
}

// digestHash is the hash of a digest by which a person is found.
type digestHash struct {
	keyed.Hash
	line      uint32
	respelled bool
}

// list is a list with ; of distinct members.
type list struct {
	joined []byte
	ends   []int
}

func (l *list) reset() { l.joined, l.ends = l.joined[:0], l.ends[:0] }

// text is the list, valid until it is changed.
func (l *list) text() string { return unsafe.String(unsafe.SliceData(l.joined), len(l.joined)) }

// add adds a member. It returns false if the list has it.
func (l *list) add(member []byte) bool {
	from := 0
	for _, end := range l.ends {
		if bytes.Equal(l.joined[from:end], member) {
			return false
		}
		from = end + 1
	}
	if len(l.ends) > 0 {
		l.joined = append(l.joined, ';')
	}
	l.joined = append(l.joined, member...)
	l.ends = append(l.ends, len(l.joined))
	return true
}

// addEmail adds an email to the line that is parsed. The text of the error is the reason.
func (l *lines) addEmail(cell string) error {
	a, err := email.Parse(unsafe.Slice(unsafe.StringData(cell), len(cell)))
	if err != nil {
		return err
	}
	start := len(l.addresses)
	l.addresses = a.AppendKey(l.addresses)
	key := l.addresses[start:]
	if known := !l.emails.add(key); known || a.Kind() != email.Plaintext || !a.OneForm() {
		l.addresses = l.addresses[:start]
		if !known {
			l.addForms(string(key))
		}
		return nil
	}
	l.ends = append(l.ends, int32(len(l.addresses)))
	l.people = append(l.people, l.count)
	return nil
}

// addForms adds the digests of an email with several forms, or of a digest.
func (l *lines) addForms(key string) {
	for _, d := range lookupDigests(key) {
		l.digests = append(l.digests, digestHash{keyed.HashOf(string(d.raw)), l.count, d.respelled})
	}
}

// add ends a line.
func (l *lines) add(cells [fields]string) {
	l.details = imports.AppendCells(l.details, cells[phoneDetails])
	l.cells = imports.AppendCells(imports.AppendCells(l.cells, cells[:phoneDetails]...), cells[phoneDetails+1:]...)
	l.count++
}

// hash adds the digests of the addresses with one form.
func (l *lines) hash() {
	n := len(l.people)
	l.md5, l.sha1, l.sha256 = sized(l.md5, 16*n), sized(l.sha1, 20*n), sized(l.sha256, 32*n)
	hashlanes.Sum(l.md5, l.sha1, l.sha256, l.addresses, append([]int32{0}, l.ends...))
	for i, line := range l.people {
		for _, digest := range [][]byte{l.md5[16*i:][:16], l.sha1[20*i:][:20], l.sha256[32*i:][:32]} {
			l.digests = append(l.digests, digestHash{Hash: keyed.HashOf(unsafe.String(&digest[0], len(digest))), line: line})
		}
	}
}

// writeTo writes the lines and empties them.
func (l *lines) writeTo(w *keyed.Writer, digests *keyed.IndexWriter) error {
	var cells [fields]string
	first := uint32(w.Rows())
	for rest, details := l.cells, l.details; len(rest) > 0; {
		for i := range cells {
			var cell []byte
			if i == phoneDetails {
				cell, details = imports.NextCell(details)
			} else {
				cell, rest = imports.NextCell(rest)
			}
			cells[i] = unsafe.String(unsafe.SliceData(cell), len(cell))
		}
		if _, err := w.Add(cells[:]...); err != nil {
			return err
		}
	}
	for _, d := range l.digests {
		if err := digests.Add(d.Hash, first+d.line, d.respelled); err != nil {
			return err
		}
	}
	*l = lines{
		cells: l.cells[:0], details: l.details[:0], digests: l.digests[:0], addresses: l.addresses[:0], ends: l.ends[:0], people: l.people[:0],
		md5: l.md5, sha1: l.sha1, sha256: l.sha256, emails: l.emails, phones: l.phones,
	}
	return nil
}

// sized returns n bytes, those of b if they are enough.
func sized(b []byte, n int) []byte { return slices.Grow(b[:0], n)[:n] }
