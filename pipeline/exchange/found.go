package exchange

import (
	"encoding/binary"
	"time"

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
		to = appendBytes(to, text)
	}
	to = binary.AppendVarint(to, int64(a.Status))
	to = binary.AppendVarint(to, a.Received.UnixMilli())
	if a.Credits != nil {
		to = binary.AppendVarint(to, *a.Credits)
	}
	return appendBytes(to, a.Body)
}

// decodeFound is the reverse. The body shares the memory of d.
func decodeFound(d *decoder) (f answers.Found) {
	flags := d.byte()
	f.Stored, f.Fresh = flags&flagStored != 0, flags&flagFresh != 0
	f.Open = answers.State(d.bytes())
	a := &f.Answer
	a.Outcome, a.Reason = answers.Outcome(d.bytes()), string(d.bytes())
	a.Resolution, a.Request = string(d.bytes()), string(d.bytes())
	a.Status, a.Received = int(d.int()), time.UnixMilli(d.int()).UTC()
	if flags&flagPriced != 0 {
		credits := d.int()
		a.Credits = &credits
	}
	if a.Body = d.bytes(); len(a.Body) == 0 {
		a.Body = nil
	}
	d.bad = d.bad || flags >= flagPriced<<1 || len(d.rest) > 0
	return f
}
