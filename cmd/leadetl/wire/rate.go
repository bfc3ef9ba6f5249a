package wire

import (
	"strings"

	"github.com/leadetl/leadetl/resolution/service/limit"
)

// Rate is a flag value such as 600/min.
type Rate struct{ Rate *limit.Rate }

// Type returns the placeholder of the value in help texts.
func (r Rate) Type() string { return "rate" }

func (r Rate) String() string {
	if r.Rate == nil { // pflag compares defaults with the zero value
		return ""
	}
	return r.Rate.String()
}

// Set does not raise the burst if text names none.
func (r Rate) Set(text string) error {
	parsed, err := limit.ParseRate(text)
	if err != nil {
		return err
	}
	if parsed != limit.None && !strings.Contains(text, "burst") {
		parsed.Burst = min(r.Rate.Burst, parsed.Burst)
		if r.Rate.Burst == 0 { // no limit was set before
			parsed.Burst = defaultBurst
		}
	}
	*r.Rate = parsed
	return nil
}

// defaultBurst is the burst of a rate if no limit was set before.
const defaultBurst = 20
