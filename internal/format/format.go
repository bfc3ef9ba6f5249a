// Package format refuses data that another version of the program wrote in another format.
// Such data is never read, changed or taken for none.
package format

import "fmt"

// Error says that data has another format than the one that this program reads.
type Error struct {
	Where  string // a file, folder or URI
	Found  int    // the number of its format; 0 without one
	Reads  int    // the number that this program reads
	Advice string // what its owner does now
}

// Check returns an *Error unless data has the format that this program reads.
func Check(where string, found, reads int, advice string) error {
	if found == reads {
		return nil
	}
	return &Error{where, found, reads, advice}
}

func (e *Error) Error() string {
	found := fmt.Sprintf("format %d", e.Found)
	if e.Found == 0 {
		found = "no format number"
	}
	return fmt.Sprintf("%s has %s, and this program reads format %d only: %s", e.Where, found, e.Reads, e.Advice)
}
