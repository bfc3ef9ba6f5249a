package exchange

import (
	"encoding/binary"
	"time"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// The flags of a record.
const (
	flagStored = 1 << iota
	flagFresh
	flagPriced
)

// appendFound encodes what is known of a question, except which run paid or
// asked, and when.
func appendFound(to []byte, f answers.Found) []byte {
	a := f.Answer
	to = append(to, flag(f.Stored, flagStored)|flag(f.Fresh, flagFresh)|flag(a.Credits != nil, flagPriced))
	for _, text := range []string{string(f.Open), string(a.Outcome), a.Reason, a.Resolution, a.Request} {
		to = fields.Append(to, text)
	}
	to = binary.AppendVarint(to, int64(a.Status))
	to = binary.AppendVarint(to, a.Received.UnixMilli())
	if a.Credits != nil {
		to = binary.AppendVarint(to, *a.Credits)
	}
	return fields.Append(to, a.Body)
}

// decodeFound is the reverse. The body shares the memory of d.
func decodeFound(d *fields.Reader) (f answers.Found) {
	flags := d.Byte()
	f.Stored, f.Fresh = flags&flagStored != 0, flags&flagFresh != 0
	f.Open = answers.State(d.Bytes())
	a := &f.Answer
	a.Outcome, a.Reason = answers.Outcome(d.Bytes()), d.Text()
	a.Resolution, a.Request = d.Text(), d.Text()
	a.Status, a.Received = int(d.Int()), time.UnixMilli(d.Int()).UTC()
	if flags&flagPriced != 0 {
		credits := d.Int()
		a.Credits = &credits
	}
	if a.Body = d.Bytes(); len(a.Body) == 0 {
		a.Body = nil
	}
	d.Broken = d.Broken || flags >= flagPriced<<1 || len(d.Rest) > 0
	return f
}
