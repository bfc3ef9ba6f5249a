package columns

import (
	"cmp"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/transforms/phone"
)

// contactFiller builds the contact block.
type contactFiller struct {
	before         texts // first_name … email
	emails, phones *pairsBuilder
	after          texts // network_url, street … state
	lastSeen       *array.TimestampBuilder
	people         peopleFiller
}

func newContactFiller(tables *textTables) *contactFiller {
	return &contactFiller{
		people: newPeopleFiller(tables),
		before: newTexts(8), emails: newPairsBuilder(emailsType), phones: newPairsBuilder(phonesType), after: newTexts(5),
		lastSeen: array.NewTimestampBuilder(memory.DefaultAllocator, instantType),
	}
}

func (f *contactFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	if b.People != nil {
		return f.people.fill(b.People, to)
	}
	f.before.start(b.Len())
	f.after.start(b.Len())
	emails, phones := 0, 0
	for i := range b.Len() {
		l := b.lead(i)
		emails, phones = emails+len(l.Emails), phones+len(l.Phones)
	}
	f.emails.start(b.Len(), emails)
	f.phones.start(b.Len(), phones)
	for i := range b.Len() {
		l := b.lead(i)
		f.before.append(l.FirstName, l.LastName, l.FullName, l.Headline, l.JobTitle, l.Seniority, l.Department, l.Email)
		for _, e := range l.Emails {
			f.emails.add(e.Email, e.Type)
		}
		f.emails.end()
		for _, p := range l.Phones {
			f.phones.add(p.Phone, p.Type)
		}
		f.phones.end()
		f.after.append(l.NetworkURL, l.Address.Street, l.Address.ZipCode, l.Address.City, l.Address.State)
		if l.LastSeenAt == nil {
			f.lastSeen.AppendNull()
		} else {
			f.lastSeen.Append(arrow.Timestamp(l.LastSeenAt.UnixMicro()))
		}
	}
	to = append(f.before.finish(to), f.emails.finish(), f.phones.finish())
	return append(f.after.finish(to), f.lastSeen.NewArray())
}

// phoneFiller builds the phone block from the answered number.
type phoneFiller struct {
	region string
	texts  texts // phone, phone_raw, phone_region, phone_type
	valid  *array.BooleanBuilder
	raw    texts // phone_raw of people

	tables         *textTables
	regions, kinds []int32 // codes of people
}

func newPhoneFiller(l *Layout) *phoneFiller {
	return &phoneFiller{region: l.settings.DefaultRegion, texts: newTexts(4), raw: newTexts(1), valid: array.NewBooleanBuilder(memory.DefaultAllocator), tables: &l.texts}
}

func (f *phoneFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	if b.People != nil {
		return f.people(b.People, to)
	}
	f.texts.start(b.Len())
	for i := range b.Len() {
		l := b.lead(i)
		n, err := phone.Parse(l.Phone, f.region)
		raw := cmp.Or(l.PhoneRaw, l.Phone)
		if err != nil {
			f.texts.append("", raw, "", "")
			f.valid.AppendNull()
			continue
		}
		d := phone.Describe(n.E164)
		f.texts.append(n.E164, raw, d.Region, d.Type)
		f.valid.Append(d.Valid)
	}
	return append(f.texts.finish(to), f.valid.NewArray())
}

// matchFiller builds match_level and confidence.
type matchFiller struct {
	level      texts
	confidence *array.Float64Builder
}

func newMatchFiller() *matchFiller {
	return &matchFiller{newTexts(1), array.NewFloat64Builder(memory.DefaultAllocator)}
}

func (f *matchFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	if b.People != nil {
		return f.people(b.People, to)
	}
	f.level.start(b.Len())
	for i := range b.Len() {
		l := b.lead(i)
		f.level.append(l.MatchLevel)
		if l.Confidence == nil {
			f.confidence.AppendNull()
		} else {
			f.confidence.Append(*l.Confidence)
		}
	}
	return append(f.level.finish(to), f.confidence.NewArray())
}
