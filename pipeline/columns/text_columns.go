package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// texts builds some string columns; "" means null. Their arrays are over memory that the
// next batch uses again. With the builders of Arrow, half the time of an ip_to_company
// run, which has 20 such columns, went into building and collecting garbage.
type texts []textColumn

type textColumn struct {
	strings Strings
	valid   []byte // bitmap
	nulls   int
}

func newTexts(n int) texts { return make(texts, n) }

// start prepares for n rows.
func (t texts) start(n int) {
	for i := range t {
		t[i].start(n)
	}
}

func (c *textColumn) start(n int) {
	c.strings.Reset()
	c.nulls = 0
	c.valid = resize(c.valid, int(bitutil.BytesForBits(int64(n))))
}

// append adds a row: a value a column.
func (t texts) append(values ...string) {
	for i, v := range values {
		t[i].append(v)
	}
}

func (c *textColumn) append(v string) {
	if v == "" {
		c.nulls++
	} else {
		bitutil.SetBit(c.valid, c.strings.Len())
		c.strings.Data = append(c.strings.Data, v...)
	}
	c.strings.End()
}

func (t texts) finish(to []arrow.Array) []arrow.Array {
	for i := range t {
		to = append(to, t[i].finish())
	}
	return to
}

func (c *textColumn) finish() arrow.Array {
	var validity *memory.Buffer
	if c.nulls > 0 {
		validity = memory.NewBufferBytes(c.valid)
	}
	return c.strings.over(validity, c.nulls)
}

// textFiller builds text columns that follow from a row alone.
type textFiller struct {
	texts texts
	row   func(b *Batch, i int, to texts)
}

func (f *textFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	f.texts.start(b.Len())
	for i := range b.Len() {
		f.row(b, i, f.texts)
	}
	return f.texts.finish(to)
}

// newNetworkFiller builds network_url.
func newNetworkFiller() filler {
	return &networkFiller{textFiller{newTexts(1), func(b *Batch, i int, to texts) { to.append(b.lead(i).NetworkURL) }}}
}

type networkFiller struct{ leads textFiller }

func (f *networkFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	switch {
	case b.People != nil:
		return append(to, textArray(&b.People.NetworkURL))
	case b.Profiles != nil:
		return append(to, textArray(b.Profiles))
	}
	return f.leads.fill(b, to)
}

// addressFiller builds ip_class and org_type.
type addressFiller struct{ classes, orgTypes *wordColumn }

func newAddressFiller() filler {
	return &addressFiller{newWordColumn(), newWordColumn()}
}

func (f *addressFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	return append(to, f.classes.build(b.IPClasses[:b.Len()]), f.orgTypes.build(b.OrgTypes[:b.Len()]))
}

// newLeadTypeFiller builds lead_type.
func newLeadTypeFiller() filler {
	return &textFiller{newTexts(1), func(b *Batch, i int, to texts) { to.append(b.Finds[i].LeadType) }}
}
