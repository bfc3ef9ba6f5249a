// Package format refuses data that another version of the program wrote in another format.
// Such data is never read, changed or taken for none.
package format

import "fmt"

// Error says that data has another format than the one that this program reads.
type Error struct {
	Where  string // a file, folder or URI
	Found  int    // the number of its format; 0 without one, Unknown if it does not say
	Reads  int    // the number that this program reads
	Advice string // what its owner does now
}

// Unknown is the number of a format that this program does not know.
const Unknown = -1

// Check returns an *Error unless data has the format that this program reads.
func Check(where string, found, reads int, advice string) error {
	if found == reads {
		return nil
	}
	return &Error{where, found, reads, advice}
}

func (e *Error) Error() string {
	found := fmt.Sprintf("format %d", e.Found)
	switch e.Found {
	case 0:
		found = "no format number"
	case Unknown:
		found = "a format that is not known"
	}
	return fmt.Sprintf("%s has %s, and this program reads format %d only: %s", e.Where, found, e.Reads, e.Advice)
}
