package columns

import (
	"math"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/phone"
)

// valuesFiller builds columns that are those of answers.
type valuesFiller struct {
	tables         *textTables
	rows           []values.Value
	emails, phones pairLists
	lastSeen       *array.TimestampBuilder
	confidence     *array.Float64Builder
}

func newValuesFiller(tables *textTables, rows []values.Value) *valuesFiller {
	return &valuesFiller{
		tables: tables, rows: rows, emails: pairLists{kind: schema.Emails}, phones: pairLists{kind: schema.Phones},
		lastSeen:   array.NewTimestampBuilder(memory.DefaultAllocator, schema.Instant),
		confidence: array.NewFloat64Builder(memory.DefaultAllocator),
	}
}

func (f *valuesFiller) fill(b *Batch, to *blocks) {
	for i := range f.rows {
		to.add(func() arrow.Array { return f.column(&f.rows[i], b.Answers, b.Len()) })
	}
}

func (f *valuesFiller) column(v *values.Value, a *resolution.Answers, n int) arrow.Array {
	switch v.Name {
	case "emails":
		return f.emails.array(&a.Emails, n)
	case "phones":
		return f.phones.array(&a.Phones, n)
	case "last_seen_at":
		a.LastSeen = resolution.Pad(a.LastSeen, n, resolution.NotSeen)
		f.lastSeen.Reserve(n)
		for _, seen := range a.LastSeen {
			appendKnown(f.lastSeen, arrow.Timestamp(seen), seen != resolution.NotSeen)
		}
		return f.lastSeen.NewArray()
	case "confidence":
		a.Confidences = resolution.Pad(a.Confidences, n, math.NaN())
		for _, c := range a.Confidences {
			appendKnown(f.confidence, c, !math.IsNaN(c))
		}
		return f.confidence.NewArray()
	}
	return f.tables.column(&a.Texts[v.Text], n)
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
	details := &a.Texts[resolution.FieldPhoneDetails]
	if details.Pad(n); !hasDetails(numbers, details) {
		f.describeAll(numbers, to)
		return
	}
	table := f.tables.details(details.Table)
	f.codes[0], f.codes[1] = f.codes[0][:0], f.codes[1][:0]
	for _, code := range details.Codes {
		f.codes[0], f.codes[1] = append(f.codes[0], table.regions.of[code]), append(f.codes[1], table.types.of[code])
	}
	to.add(func() arrow.Array { return codedArray(table.regions.kind, f.codes[0], table.regionValues) })
	to.add(func() arrow.Array { return codedArray(table.types.kind, f.codes[1], table.typeValues) })
	to.add(func() arrow.Array {
		f.valid.Reserve(n)
		for _, code := range details.Codes {
			known := int(code) < len(table.valid)
			appendKnown(f.valid, known && table.valid[code], known)
		}
		return f.valid.NewArray()
	})
}

// hasDetails reports whether all numbers have details, by their codes. Those of services have none.
func hasDetails(numbers, details *resolution.CodedTexts) bool {
	if details.Table == nil {
		return false
	}
	for i, code := range details.Codes {
		if int(code) == details.Table.Len() && len(numbers.At(i)) > 0 {
			return false
		}
	}
	return true
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
func (f *phoneFiller) describeAll(numbers *resolution.CodedTexts, to *blocks) {
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

// CleanPhones brings the numbers of a service's answers into E.164. A first number that cannot be
// read stays in phone_raw alone, one of the list of all numbers as it is.
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
	if all := &a.Phones; all.Texts.Len() > 0 {
		var cleaned resolution.TypedTexts
		for i := range all.Len() {
			for n, to := all.Of(i); n < to; n++ {
				text := all.Texts.At(n)
				if number, err := phone.Parse(string(text), l.settings.DefaultRegion); err == nil {
					text = []byte(number.E164)
				}
				cleaned.Put(i, text, all.Types.At(n))
			}
		}
		*all = cleaned
	}
}
