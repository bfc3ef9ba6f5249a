package columns

import (
	"math"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/phone"
)

// fieldsFiller builds columns of texts that are those of answers.
type fieldsFiller struct {
	tables *textTables
	fields []resolution.Field
}

func newFieldsFiller(tables *textTables, fields ...resolution.Field) *fieldsFiller {
	return &fieldsFiller{tables, fields}
}

func (f *fieldsFiller) fill(b *Batch, to *blocks) {
	for _, field := range f.fields {
		to.add(func() arrow.Array { return f.tables.column(&b.Answers.Texts[field], b.Len()) })
	}
}

func contactColumns() []schema.Column {
	return []schema.Column{
		repeating("first_name"), repeating("last_name"), repeating("full_name"), repeating("headline"),
		repeating("job_title"), repeating("seniority"), repeating("department"),
		text("email"), of("emails", emailsType), of("phones", phonesType), text("network_url"),
		repeating("street"), repeating("zip_code"), repeating("city"), repeating("state"),
		repeats(of("last_seen_at", instantType)),
	}
}

// contactMeanings are those of the columns of the contact and phone blocks.
var contactMeanings = map[string]meaning{
	"first_name":   {Text: "given name"},
	"last_name":    {Text: "family name"},
	"full_name":    {Text: "whole name"},
	"headline":     {Text: "headline of the profile"},
	"job_title":    {Text: "job title"},
	"seniority":    {Text: "level of the job"},
	"department":   {Text: "department of the job"},
	"email":        {Text: "first of emails"},
	"emails":       {Text: "every address known: email, and its type, such as work", Null: "none"},
	"phones":       {Text: "every number known: phone, and its type, such as mobile", Null: "none"},
	"street":       {Text: "the person's street and number"},
	"zip_code":     {Text: "the person's postal code, text: leading zeros stay"},
	"city":         {Text: "the person's city"},
	"state":        {Text: "the person's state"},
	"last_seen_at": {Text: "when the person was last seen", Unit: "microseconds, UTC"},

	"phone":        {Text: "phone number", Unit: "E.164", Null: "none, or it cannot be read", From: "docs/reference/identifiers.md, phone", Form: "E.164"},
	"phone_raw":    {Text: "phone number as answered, or as the reference data has it", Null: "none"},
	"phone_region": {Text: "region of the number, 001 for none", Unit: "ISO 3166-1 alpha-2", Null: "there is no phone, or its plan serves several regions", From: "the numbering plans", Form: "region"},
	"phone_type":   {Text: "what the number is for: mobile, fixed_line and so on", Null: "there is no phone", From: "the numbering plans"},
	"phone_valid":  {Text: "whether the region's plan has given the number out", Null: "there is no phone", From: "the numbering plans"},
}

// contactFiller builds the contact block.
type contactFiller struct {
	before, after  *fieldsFiller // emails and phones
	emails, phones pairLists
	lastSeen       *array.TimestampBuilder
}

func newContactFiller(tables *textTables) *contactFiller {
	return &contactFiller{
		before: newFieldsFiller(tables, resolution.FieldFirstName, resolution.FieldLastName, resolution.FieldFullName, resolution.FieldHeadline,
			resolution.FieldJobTitle, resolution.FieldSeniority, resolution.FieldDepartment, resolution.FieldEmail),
		emails: pairLists{kind: emailsType}, phones: pairLists{kind: phonesType},
		after: newFieldsFiller(tables, resolution.FieldNetworkURL, resolution.FieldStreet, resolution.FieldZipCode,
			resolution.FieldCity, resolution.FieldState),
		lastSeen: array.NewTimestampBuilder(memory.DefaultAllocator, instantType),
	}
}

func (f *contactFiller) fill(b *Batch, to *blocks) {
	a, n := b.Answers, b.Len()
	f.before.fill(b, to)
	to.add(func() arrow.Array { return f.emails.array(&a.Emails, n) })
	to.add(func() arrow.Array { return f.phones.array(&a.Phones, n) })
	f.after.fill(b, to)
	to.add(func() arrow.Array {
		a.LastSeen = resolution.Pad(a.LastSeen, n, resolution.NotSeen)
		f.lastSeen.Reserve(n)
		for _, seen := range a.LastSeen {
			appendKnown(f.lastSeen, arrow.Timestamp(seen), seen != resolution.NotSeen)
		}
		return f.lastSeen.NewArray()
	})
}

func phoneColumns() []schema.Column {
	return []schema.Column{
		repeating("phone"), repeating("phone_raw"), repeating("phone_region"), repeating("phone_type"),
		of("phone_valid", arrow.FixedWidthTypes.Boolean),
	}
}

// phoneFiller builds the phone block from numbers in E.164.
type phoneFiller struct {
	texts  texts // phone_raw, phone_region, phone_type
	valid  *array.BooleanBuilder
	tables *textTables
	codes  [2][]int32 // of phone_region and phone_type
}

func newPhoneFiller(l *Layout) *phoneFiller {
	return &phoneFiller{texts: newTexts(3), valid: array.NewBooleanBuilder(memory.DefaultAllocator), tables: &l.texts}
}

func (f *phoneFiller) fill(b *Batch, to *blocks) {
	a, n := b.Answers, b.Len()
	numbers := &a.Texts[resolution.FieldPhone]
	f.texts.start(n)
	to.add(func() arrow.Array { return f.tables.column(numbers, n) })
	to.add(func() arrow.Array { return f.raw(a, n) })
	if !to.wants(3) {
		to.skip(3)
		return
	}
	numbers.Pad(n)
	if numbers.Table == nil {
		f.describeAll(&numbers.Texts, to)
		return
	}
	table := f.tables.phones(numbers.Table)
	f.codes[0], f.codes[1] = f.codes[0][:0], f.codes[1][:0]
	for _, code := range numbers.Codes {
		f.codes[0], f.codes[1] = append(f.codes[0], table.regions.of[code]), append(f.codes[1], table.kinds.of[code])
	}
	to.add(func() arrow.Array { return codedArray(table.regions.kind, f.codes[0], table.regionValues) })
	to.add(func() arrow.Array { return codedArray(table.kinds.kind, f.codes[1], table.kindValues) })
	to.add(func() arrow.Array {
		for _, code := range numbers.Codes {
			known := int(code) < len(table.valid)
			appendKnown(f.valid, known && table.valid[code], known)
		}
		return f.valid.NewArray()
	})
}

// raw builds phone_raw. It is the column phone as long as the source has all numbers in E.164.
func (f *phoneFiller) raw(a *resolution.Answers, n int) arrow.Array {
	numbers, raw := &a.Texts[resolution.FieldPhone], &a.Texts[resolution.FieldPhoneRaw]
	if len(raw.Texts.Data) == 0 {
		return f.tables.column(numbers, n)
	}
	column := &f.texts[0]
	for i := range n {
		text := raw.At(i)
		if len(text) == 0 {
			text = numbers.At(i)
		}
		column.append(text)
	}
	return column.finish()
}

// describeAll builds phone_region, phone_type and phone_valid, in one pass.
func (f *phoneFiller) describeAll(numbers *resolution.Texts, to *blocks) {
	region, kind := &f.texts[1], &f.texts[2]
	for i := range numbers.Len() {
		e164 := numbers.At(i)
		if len(e164) == 0 {
			region.append(nil)
			kind.append(nil)
			f.valid.AppendNull()
			continue
		}
		d := phone.Describe(unsafe.String(unsafe.SliceData(e164), len(e164)))
		region.append([]byte(d.Region))
		kind.append([]byte(d.Type))
		f.valid.Append(d.Valid)
	}
	valid := f.valid.NewArray()
	defer valid.Release()
	to.add(region.finish)
	to.add(kind.finish)
	to.add(func() arrow.Array { valid.Retain(); return valid })
}

// CleanPhones brings the first numbers of a service's answers into E.164. A number that
// cannot be read stays in phone_raw alone.
func (l *Layout) CleanPhones(a *resolution.Answers) {
	numbers, raw := &a.Texts[resolution.FieldPhone], &a.Texts[resolution.FieldPhoneRaw]
	var clean, written resolution.CodedTexts
	for i := range numbers.Len() {
		given, text := numbers.At(i), raw.At(i)
		if len(text) == 0 {
			text = given
		}
		number, err := phone.Parse(string(given), l.settings.DefaultRegion)
		if err == nil {
			clean.Set(i, []byte(number.E164))
		}
		if err != nil || number.E164 != string(text) {
			written.Set(i, text)
		}
	}
	*numbers, *raw = clean, written
}

// confidenceFiller builds confidence.
type confidenceFiller struct{ confidence *array.Float64Builder }

func newConfidenceFiller() *confidenceFiller {
	return &confidenceFiller{array.NewFloat64Builder(memory.DefaultAllocator)}
}

func (f *confidenceFiller) fill(b *Batch, to *blocks) {
	to.add(func() arrow.Array {
		a := b.Answers
		a.Confidences = resolution.Pad(a.Confidences, b.Len(), math.NaN())
		for _, c := range a.Confidences {
			appendKnown(f.confidence, c, !math.IsNaN(c))
		}
		return f.confidence.NewArray()
	})
}
