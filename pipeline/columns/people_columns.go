package columns

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Columns of people become Arrow arrays over the same memory.

// textTables are the tables of coded texts as Arrow arrays. All parts of a run share them,
// because the encoder tells tables apart by their type object. It is safe from many
// goroutines.
type textTables struct {
	mu        sync.Mutex
	all       map[*resolution.TextTable]textTable
	described map[*resolution.TextTable]*phoneTable
}

// textTable is the texts of a table, and null behind them.
type textTable struct {
	kind   *arrow.DictionaryType
	values arrow.Array
}

func (t *textTables) get(of *resolution.TextTable) textTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.all[of]; ok {
		return known
	}
	n := of.Len()
	offsets := append(slices.Clone(of.Offsets), of.Offsets[n])
	valid := make([]byte, bitutil.BytesForBits(int64(n+1)))
	bitutil.SetBitsTo(valid, 0, int64(n), true)
	texts := Strings{Data: of.Data, Offsets: offsets}
	made := textTable{
		kind:   &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
		values: texts.over(memory.NewBufferBytes(valid), 1),
	}
	if t.all == nil {
		t.all = map[*resolution.TextTable]textTable{}
	}
	t.all[of] = made
	return made
}

// column is a column of coded texts.
func (t *textTables) column(c *resolution.CodedTexts) arrow.Array {
	if c.Plain {
		return textArray(&c.Texts)
	}
	table := t.get(c.Table)
	return codedArray(table.kind, c.Codes, table.values)
}

func codedArray(kind *arrow.DictionaryType, codes []int32, values arrow.Array) arrow.Array {
	indices := int32Array(codes)
	defer indices.Release()
	return array.NewDictionaryArray(kind, indices, values)
}

// textArray is a column of texts; an empty one is null.
func textArray(t *resolution.Texts) arrow.Array {
	s := Strings{Data: t.Data, Offsets: t.Offsets}
	return s.array(func(i int) bool { return t.Offsets[i] < t.Offsets[i+1] })
}

// pairLists are lists of pairs over the memory of lists of their first texts.
type pairLists struct {
	kind  *arrow.ListType
	types []byte // offsets and bitmap of second texts that are null
}

// without is lists of pairs without second texts.
func (p *pairLists) without(l *resolution.TextLists) arrow.Array {
	n := l.Texts.Len()
	if size := 4 * (n + 1); len(p.types) < size {
		p.types = make([]byte, size)
	}
	data := array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{memory.NewBufferBytes(p.types), memory.NewBufferBytes(p.types[:4*(n+1)]), nil}, nil, n, 0)
	defer data.Release()
	return p.with(l, data)
}

// with is lists of pairs with these second texts.
func (p *pairLists) with(l *resolution.TextLists, second arrow.ArrayData) arrow.Array {
	texts := Strings{Data: l.Texts.Data, Offsets: l.Texts.Offsets}
	first := texts.over(nil, 0)
	pairs := array.NewData(p.kind.Elem(), texts.Len(), []*memory.Buffer{nil}, []arrow.ArrayData{first.Data(), second}, 0, 0)
	valid, nulls := bitmap(len(l.Ends)-1, func(i int) bool { return l.Ends[i] < l.Ends[i+1] })
	list := array.NewData(p.kind, len(l.Ends)-1, []*memory.Buffer{valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(l.Ends))}, []arrow.ArrayData{pairs}, nulls, 0)
	defer func() { first.Release(); pairs.Release(); list.Release() }()
	return array.NewListData(list)
}

// peopleFiller builds the contact block from columns of people.
type peopleFiller struct {
	tables         *textTables
	emails, phones pairLists
	lastSeen       *array.TimestampBuilder
}

func newPeopleFiller(tables *textTables) peopleFiller {
	return peopleFiller{
		tables: tables, emails: pairLists{kind: emailsType}, phones: pairLists{kind: phonesType},
		lastSeen: array.NewTimestampBuilder(memory.DefaultAllocator, instantType),
	}
}

func (f *peopleFiller) fill(p *resolution.People, to []arrow.Array) []arrow.Array {
	text := func(t resolution.PersonText) arrow.Array { return f.tables.column(&p.Texts[t]) }
	f.lastSeen.Reserve(len(p.LastSeen))
	for _, seen := range p.LastSeen {
		appendKnown(f.lastSeen, arrow.Timestamp(seen), seen != resolution.NotSeen)
	}
	return append(to,
		text(resolution.PersonFirstName), text(resolution.PersonLastName), textArray(&p.FullName), text(resolution.PersonHeadline),
		text(resolution.PersonJobTitle), text(resolution.PersonSeniority), text(resolution.PersonDepartment), textArray(&p.Email),
		f.emails.without(p.Emails()), f.phones.without(&p.Phones), textArray(&p.NetworkURL),
		text(resolution.PersonStreet), text(resolution.PersonZipCode), text(resolution.PersonCity), text(resolution.PersonState),
		f.lastSeen.NewArray())
}

// phoneTable is what the numbers of a table say, by code. Numbers that many people share
// are described once.
type phoneTable struct {
	regions, kinds           *valueTable // of each number, and null behind them
	regionValues, kindValues arrow.Array
	valid                    []bool
}

func (t *textTables) phones(of *resolution.TextTable) *phoneTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.described[of]; ok {
		return known
	}
	made := &phoneTable{regions: newValueTable(arrow.BinaryTypes.String), kinds: newValueTable(arrow.BinaryTypes.String)}
	for code := range of.Len() {
		d := phone.Describe(string(of.At(code)))
		made.regions.addText(d.Region)
		made.kinds.addText(d.Type)
		made.valid = append(made.valid, d.Valid)
	}
	made.regions.addText("")
	made.kinds.addText("")
	made.regionValues, made.kindValues = made.regions.values(), made.kinds.values()
	if t.described == nil {
		t.described = map[*resolution.TextTable]*phoneTable{}
	}
	t.described[of] = made
	return made
}

// people builds the phone block from numbers in E.164.
func (f *phoneFiller) people(p *resolution.People, to []arrow.Array) []arrow.Array {
	to = f.numbers(p, to)
	if p.Phone.Plain {
		return f.describeAll(&p.Phone.Texts, to)
	}
	table := f.tables.phones(p.Phone.Table)
	for _, code := range p.Phone.Codes {
		known := int(code) < len(table.valid)
		appendKnown(f.valid, known && table.valid[code], known)
	}
	f.regions, f.kinds = f.regions[:0], f.kinds[:0]
	for _, code := range p.Phone.Codes {
		f.regions, f.kinds = append(f.regions, table.regions.of[code]), append(f.kinds, table.kinds.of[code])
	}
	return append(to, codedArray(table.regions.kind, f.regions, table.regionValues),
		codedArray(table.kinds.kind, f.kinds, table.kindValues), f.valid.NewArray())
}

// numbers builds phone and phone_raw. They are one column as long as the source has all numbers
// in E.164.
func (f *phoneFiller) numbers(p *resolution.People, to []arrow.Array) []arrow.Array {
	number := f.tables.column(&p.Phone)
	if len(p.PhoneRaw.Data) == 0 {
		number.Retain()
		return append(to, number, number)
	}
	f.raw.start(p.PhoneRaw.Len())
	for i := range p.PhoneRaw.Len() {
		raw := p.PhoneRaw.At(i)
		if len(raw) == 0 {
			raw = p.Phone.At(i)
		}
		f.raw.append(unsafe.String(unsafe.SliceData(raw), len(raw)))
	}
	return f.raw.finish(append(to, number))
}

// describeAll builds phone_region, phone_type and phone_valid.
func (f *phoneFiller) describeAll(numbers *resolution.Texts, to []arrow.Array) []arrow.Array {
	f.texts.start(numbers.Len())
	region, kind := &f.texts[2], &f.texts[3]
	for i := range numbers.Len() {
		e164 := numbers.At(i)
		if len(e164) == 0 {
			region.append("")
			kind.append("")
			f.valid.AppendNull()
			continue
		}
		d := phone.Describe(unsafe.String(unsafe.SliceData(e164), len(e164)))
		region.append(d.Region)
		kind.append(d.Type)
		f.valid.Append(d.Valid)
	}
	return append(to, region.finish(), kind.finish(), f.valid.NewArray())
}

// people builds the hashes from those of the people.
func (f *hemFiller) people(p *resolution.People, to []arrow.Array) []arrow.Array {
	f.texts.start(len(p.Matched))
	for i := range p.Matched {
		for j, d := range f.digests {
			hash := ""
			for n := p.Hashes.Ends[i]; n < p.Hashes.Ends[i+1]; n++ {
				if resolution.HashTypes[p.Hashes.Types[n]] == d.name {
					text := p.Hashes.Texts.At(int(n))
					hash = unsafe.String(unsafe.SliceData(text), len(text))
					break
				}
			}
			f.texts[j].append(hash)
		}
	}
	return f.texts.finish(to)
}

var (
	hashTypes     = textsOf(resolution.HashTypes)
	hashTypeKind  = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	codedHashType = arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.StructOf(
		arrow.Field{Name: "email", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "type", Type: hashTypeKind, Nullable: true},
	), Nullable: true})
)

func textsOf(words []string) arrow.Array {
	var s Strings
	s.Reset()
	for _, word := range words {
		s.Data = append(s.Data, word...)
		s.End()
	}
	return s.array(nil)
}

// people builds hashed_emails from those of the people. The types are codes.
func (f *hashedEmailsFiller) people(p *resolution.People, to []arrow.Array) []arrow.Array {
	types := codedArray(hashTypeKind, p.Hashes.Types, hashTypes)
	defer types.Release()
	lists := pairLists{kind: codedHashType}
	return append(to, lists.with(&p.Hashes.TextLists, types.Data()))
}

// people builds match_level and confidence from those of the people.
func (f *matchFiller) people(p *resolution.People, to []arrow.Array) []arrow.Array {
	f.level.start(len(p.Matched))
	for i, level := range p.MatchLevels {
		f.level[0].append(level)
		appendKnown(f.confidence, p.Confidences[i], level != "")
	}
	return append(f.level.finish(to), f.confidence.NewArray())
}
