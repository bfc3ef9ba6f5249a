// Package transforms has no code of its own. Each folder below has the rules for one
// kind of value (email, phone, profile, ipaddr, company, orgtype): they turn what a person
// typed into a key.
//
// A function takes a cell and returns a value or a sentinel error. The text of the
// error is the word for the reason column of a dataset; it never contains the cell.
// No function does I/O, keeps state or starts a goroutine. The key of a key is the
// same key.
package transforms
