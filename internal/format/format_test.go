package format

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// TestMark: a place without data is marked before data is written, and data in another format
// is refused and stays as it is.
func TestMark(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		mark  string
		get   error
		holds bool
		want  string // of both; "" if there is no error
		after string // Begin
	}{
		{"nothing", "", nil, false, "", `{"format":3}` + "\n"},
		{"data of this format", `{"format":3}`, nil, true, "", `{"format":3}`},
		{"an older format", `{"format":2}`, nil, true, "place has format 2, and this program reads format 3 only: export it", `{"format":2}`},
		{"a newer format, without data", `{"format":4}`, nil, false, "place has format 4, and this program reads format 3 only: export it", `{"format":4}`},
		{"data without a mark", "", nil, true, "place has no format number, and this program reads format 3 only: export it", ""},
		{"a damaged mark", `{"format"`, nil, true, "place: format.json is damaged", `{"format"`},
		{"a mark without a number", `{}`, nil, true, "place: format.json is damaged", `{}`},
		{"a mark that cannot be read", "", broken, false, "broken", ""},
	} {
		text := c.mark
		m := Mark{
			Where: "place", Reads: 3, Advice: "export it",
			Get: func() ([]byte, error) {
				if c.get == nil && text == "" {
					return nil, fs.ErrNotExist
				}
				return []byte(text), c.get
			},
			Put:   func(b []byte) error { text = string(b); return nil },
			Holds: func() (bool, error) { return c.holds, nil },
		}
		for _, try := range []func() error{m.Check, m.Begin, m.Begin} {
			err := try()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			if _, is := errors.AsType[*Error](err); is != strings.Contains(c.want, "this program reads") {
				t.Errorf("%s: %v is or is not an Error", c.name, err)
			}
		}
		if text != c.after {
			t.Errorf("%s: the mark is %q, want %q", c.name, text, c.after)
		}
	}
}
