// Package changes finds the rows in which two datasets of one operation differ, and writes them.
//
// Rows of the same content are paired first, wherever they are. Of the others, rows with one key
// are paired in their order: the key is that of a column, and for a row without it the identifier
// as it was written. What is left over is added or removed; a row with neither is counted apart,
// because nobody knows which row it was. Suppressed rows have neither key nor values, and are
// left out of both datasets.
//
// The one thing to know before using it: memory does not grow with the datasets. Digests of the
// rows are sorted in a file, and only rows that differ are read a second time.
package changes
