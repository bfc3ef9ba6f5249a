package wire

import (
	"strings"

	"github.com/leadetl/leadetl/resolution/service/limit"
)

// Rate is the flag of a rate such as 600/min.
type Rate struct{ Rate *limit.Rate }

// Type is the word for the value in help texts.
func (r Rate) Type() string { return "rate" }

func (r Rate) String() string {
	if r.Rate == nil { // the zero value, by which defaults are told
		return ""
	}
	return r.Rate.String()
}

// Set leaves the burst as it is where text names none.
func (r Rate) Set(text string) error {
	parsed, err := limit.ParseRate(text)
	if err != nil {
		return err
	}
	if parsed != limit.None && !strings.Contains(text, "burst") {
		parsed.Burst = min(r.Rate.Burst, parsed.Burst)
		if r.Rate.Burst == 0 { // there was no limit
			parsed.Burst = defaultBurst
		}
	}
	*r.Rate = parsed
	return nil
}

// defaultBurst is the burst of a rate that replaces no limit.
const defaultBurst = 20
