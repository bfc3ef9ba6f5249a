// Package transforms holds nothing itself: each folder below is one kind of
// value (email, phone, profile, ipaddr, company) and the pure rules that turn
// what a person typed into a key.
//
// What they share: a function takes a cell and gives a value or a sentinel
// error, whose text is exactly the word for a dataset's reason column and
// never holds the cell. None does I/O, keeps state or starts a goroutine, and
// a key given back as a cell gives the same key.
package transforms
