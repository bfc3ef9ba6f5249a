package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
)

// texts builds some string columns; "" means null. Their arrays are over memory that the
// next batch uses again. With the builders of Arrow, half the time of an ip_to_company
// run, which has 20 such columns, went into building and collecting garbage.
type texts []textColumn

type textColumn struct {
	strings resolution.Texts
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

func (c *textColumn) append(v []byte) {
	if len(v) == 0 {
		c.nulls++
	} else {
		bitutil.SetBit(c.valid, c.strings.Len())
		c.strings.Data = append(c.strings.Data, v...)
	}
	c.strings.End()
}

func (c *textColumn) finish() arrow.Array {
	var validity *memory.Buffer
	if c.nulls > 0 {
		validity = memory.NewBufferBytes(c.valid)
	}
	return nullableStrings(&c.strings, validity, c.nulls)
}

// addressFiller builds ip_class and org_type.
type addressFiller struct{ classes, orgTypes *wordColumn }

func newAddressFiller() filler {
	return &addressFiller{newWordColumn(), newWordColumn()}
}

func (f *addressFiller) fill(b *Batch, to *blocks) {
	a := b.Answers
	a.OrgTypes = resolution.Pad(a.OrgTypes, b.Len(), "")
	to.add(func() arrow.Array { return f.classes.build(b.IPClasses[:b.Len()]) })
	to.add(func() arrow.Array { return f.orgTypes.build(a.OrgTypes) })
}
