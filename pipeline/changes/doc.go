// Package changes finds the rows in which two datasets of one operation differ, and writes them.
//
// Rows are found by their key and their occurrence: the second row with a key is compared with
// the second row that had it. A row without a key, whose identifier was rejected, is found by
// its values, so it is added or removed and never changed. Suppressed rows have neither key nor
// values, and are left out of both datasets.
//
// The one thing to know before using it: memory does not grow with the datasets. Digests of the
// rows are sorted in a file, and only rows that differ are read a second time.
package changes
