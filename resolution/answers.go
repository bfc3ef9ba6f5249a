package resolution

import (
	"iter"
	"math"
	"time"
)

// Answers are the answers to consecutive keys as columns, which become columns of output
// without a struct or a text of its own for each row: element i of each column belongs to
// key i. A column may end early: the rest of it is empty. So is a row without a match, but
// for its OrgType. The memory is used again by Reset.
//
// The type is our own and not a record of Arrow, because its columns are appended to row by
// row, lose and exchange rows, and are codes of tables that outlive them, without a builder,
// a count of references and a bitmap for each. Its layout is that of Arrow, so that package
// columns makes arrays over the same memory.
type Answers struct {
	Matched []bool
	Reasons []string // why there is no match; "" on one, and for an empty key
	// OrgTypes are the kinds of organization behind addresses; ip_to_company only.
	OrgTypes []string

	Texts  [Fields]CodedTexts
	Emails TypedTexts
	Phones TypedTexts
	// Hashes are the hashed emails; HashTypes are their types.
	Hashes TypedTexts
	// Keywords are those of the search that found a lead.
	Keywords TextLists
	// LastSeen and SearchedAt are in microseconds, NotSeen if unknown.
	LastSeen, SearchedAt []int64
	Confidences          []float64 // NaN if unknown
	Companies            CompanyCodes

	// Unread are columns that whoever answers may leave empty. Reset keeps them.
	Unread Unread

	// Used while the columns are filled: Size is about their bytes so far, and Digests counts the
	// digests in Emails.
	Size, Digests int
}

// Unread are columns of Answers that are not read: by default none.
type Unread struct {
	Texts                               [Fields]bool
	Emails, Phones, LastSeen, Companies bool
	// Company are columns of companies.
	Company [CompanyColumns]bool
	// Hashes is true if of a person's hashes only the first of each type is read, and
	// HashTypes are those whose first is not read either.
	Hashes    bool
	HashTypes [3]bool
}

// NotSeen stands for an unknown time.
const NotSeen = -1 << 63

// HashTypes are the types of hashed emails, by their codes.
var HashTypes = newTextTable("md5", "sha1", "sha256")

func newTextTable(texts ...string) *TextTable {
	t := &TextTable{}
	for _, text := range texts {
		t.Add([]byte(text))
	}
	return t
}

// Len is the number of answers; nil has none.
func (a *Answers) Len() int {
	if a == nil {
		return 0
	}
	return len(a.Matched)
}

// NewAnswers returns empty answers with a CompanyList.
func NewAnswers() *Answers {
	a := &Answers{Companies: CompanyCodes{Table: &CompanyList{}}}
	a.Hashes.Reset(HashTypes)
	return a
}

// AnswerRow is an answer among others. The zero AnswerRow is no match.
type AnswerRow struct {
	Of *Answers
	I  int
}

// Matched reports whether the answer has data.
func (r AnswerRow) Matched() bool { return r.Of != nil }

// Lead is that of Answers.
func (r AnswerRow) Lead() *Lead {
	if !r.Matched() {
		return nil
	}
	return r.Of.Lead(r.I)
}

// AddRow adds a copy of a match, or an answer without one.
func (a *Answers) AddRow(r AnswerRow) {
	if r.Matched() {
		a.Add(r.Of, r.I)
	} else {
		a.AddMiss("")
	}
}

// Reset makes a empty. Its table of companies stays.
func (a *Answers) Reset() { a.reset(&Answers{}) }

// reset makes a empty, with the tables of texts of another one.
func (a *Answers) reset(like *Answers) {
	a.Matched, a.Reasons, a.OrgTypes = a.Matched[:0], a.Reasons[:0], a.OrgTypes[:0]
	for f := range a.Texts {
		a.Texts[f].Reset(like.Texts[f].Table)
	}
	a.Emails.Reset(nil)
	a.Phones.Reset(nil)
	a.Hashes.Reset(HashTypes)
	a.Keywords.Reset()
	a.LastSeen, a.SearchedAt, a.Confidences, a.Companies.Codes = a.LastSeen[:0], a.SearchedAt[:0], a.Confidences[:0], a.Companies.Codes[:0]
	a.Size, a.Digests = 0, 0
}

// AddMiss adds an answer without a match.
func (a *Answers) AddMiss(reason string) {
	a.Matched, a.Reasons = append(a.Matched, false), append(a.Reasons, reason)
}

// AddMatch adds a match without data, and returns its row.
func (a *Answers) AddMatch() (row int) {
	a.Matched, a.Reasons = append(a.Matched, true), append(a.Reasons, "")
	return a.Len() - 1
}

// IsLastEmpty reports whether nothing was set of the last row.
func (a *Answers) IsLastEmpty() bool {
	i := a.Len() - 1
	return a.Bytes(i) == 0 && len(a.LastSeen) <= i && len(a.SearchedAt) <= i && len(a.Confidences) <= i && len(a.Companies.Codes) <= i
}

// DropLast removes the last row, of which nothing was set.
func (a *Answers) DropLast() {
	i := a.Len() - 1
	a.Matched, a.Reasons = a.Matched[:i], a.Reasons[:i]
}

// SetText sets a text of the last row; none if it is empty.
func (a *Answers) SetText(f Field, text string) { a.Texts[f].Set(a.Len()-1, bytesOf(text)) }

// AddTyped adds a text to the list of the last row in Emails or Phones.
func (a *Answers) AddTyped(list *TypedTexts, text, kind string) {
	list.Put(a.Len()-1, bytesOf(text), bytesOf(kind))
}

// AddHash adds a hash to the last row.
func (a *Answers) AddHash(hash, kind string) {
	if code := HashTypes.code(kind); code < HashTypes.Len() {
		a.Hashes.Types.Pad(a.Hashes.Texts.Len())
		a.Hashes.Types.AddCode(HashTypes, int32(code))
		a.Hashes.TextLists.Put(a.Len()-1, bytesOf(hash))
	} else {
		a.AddTyped(&a.Hashes, hash, kind)
	}
}

// AddKeyword adds a keyword to the last row.
func (a *Answers) AddKeyword(text string) { a.Keywords.Put(a.Len()-1, bytesOf(text)) }

// SetTime sets the last row of LastSeen or SearchedAt.
func (a *Answers) SetTime(column *[]int64, at time.Time) {
	*column = append(Pad(*column, a.Len()-1, NotSeen), at.UnixMicro())
}

// SetConfidence sets that of the last row.
func (a *Answers) SetConfidence(c float64) {
	a.Confidences = append(Pad(a.Confidences, a.Len()-1, math.NaN()), c)
}

// SetCompany sets that of the last row.
func (a *Answers) SetCompany(code int32) {
	a.Companies.Codes = append(Pad(a.Companies.Codes, a.Len()-1, 0), code)
}

// Pad adds a value to a column until it has n.
func Pad[T any](column []T, n int, value T) []T {
	for len(column) < n {
		column = append(column, value)
	}
	return column
}

// Add adds a copy of an answer of another Answers, whose table of companies is the same or a
// CompanyList.
func (a *Answers) Add(from *Answers, j int) {
	i := a.Len()
	a.Matched, a.Reasons = append(a.Matched, from.Matched[j]), append(a.Reasons, from.Reasons[j])
	if j < len(from.OrgTypes) {
		a.OrgTypes = append(Pad(a.OrgTypes, i, ""), from.OrgTypes[j])
	}
	if !from.Matched[j] {
		return
	}
	a.copyGroups(1<<Groups-1, from, j)
}

// Pick returns a copy of the answers to some keys.
func (a *Answers) Pick(keys iter.Seq[int]) *Answers {
	p := &Answers{Companies: CompanyCodes{Table: a.Companies.Table, Rows: a.Companies.Rows}}
	p.reset(a)
	for i := range keys {
		p.Add(a, i)
	}
	return p
}

// Keep returns a copy in which the answers that are not kept are empty.
func (a *Answers) Keep(keeps func(i int) bool) *Answers {
	p := &Answers{Companies: CompanyCodes{Table: a.Companies.Table, Rows: a.Companies.Rows}}
	p.reset(a)
	for i := range a.Len() {
		if keeps(i) {
			p.Add(a, i)
		} else {
			p.AddMiss("")
		}
	}
	return p
}

// Bytes is about how many bytes the texts of an answer have. Companies are codes, and do
// not count.
func (a *Answers) Bytes(i int) int {
	size := a.Emails.bytes(i) + a.Phones.bytes(i) + a.Hashes.bytes(i) + a.Keywords.bytes(i)
	for f := range a.Texts {
		size += len(a.Texts[f].At(i))
	}
	return size
}

// AllBytes is the sum of Bytes of all answers.
func (a *Answers) AllBytes() int {
	size := a.Emails.allBytes() + a.Phones.allBytes() + a.Hashes.allBytes() + a.Keywords.Texts.Bytes()
	for f := range a.Texts {
		size += a.Texts[f].bytes()
	}
	return size
}

// Phone is a kind of identifier that an answer may have, but that no operation takes.
const Phone Identifier = "phone"

// Identifiers returns the values in an answer that identify the person, each with its
// kind: Email (an address or a digest of one), Phone and NetworkURL. It leaves out
// those of the company.
func (a *Answers) Identifiers(i int) iter.Seq2[Identifier, string] {
	return func(yield func(Identifier, string) bool) {
		given := func(kind Identifier, value []byte) bool { return len(value) == 0 || yield(kind, string(value)) }
		for _, list := range []struct {
			kind Identifier
			of   *TextLists
		}{{Email, &a.Hashes.TextLists}, {Email, &a.Emails.TextLists}, {Phone, &a.Phones.TextLists}} {
			for n, to := list.of.Of(i); n < to; n++ {
				if !given(list.kind, list.of.Texts.At(n)) {
					return
				}
			}
		}
		_ = given(Email, a.Texts[FieldEmail].At(i)) && given(Phone, a.Texts[FieldPhone].At(i)) && given(NetworkURL, a.Texts[FieldNetworkURL].At(i))
	}
}
