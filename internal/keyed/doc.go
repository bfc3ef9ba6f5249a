// Package keyed keeps immutable files found by a key. A file is written once, from front to back,
// and replaced as a whole.
//
// A Writer adds records of text fields, of which the first is the key, and a File finds them: one
// key, many at a time, or all in their order. Of records with the same key the last one added is
// found. The fields of a record are side by side, because a look-up needs all of them: it then
// reads one place of the disk instead of one for each field. Texts that many records share are in
// the Dictionary of their field. An Index finds records by another key. Files are several files, of
// which the newest counts.
//
// Below the records a file has named columns: numbers, texts or lists in the form that they have in
// memory. A ColumnWriter writes and Columns are an open file of columns, with or without records.
// A Spool and a Lexicon hold what is not sorted yet, in temporary files.
//
// Whoever keeps a file creates it, and commits it once it is complete: keyed writes to an
// io.Writer, and opens a file of a disk.Folder. It maps a file of the file system, so an open
// file takes no memory of the process. Any other file, such as one of a simulated disk, is read
// as a whole when it is opened.
//
// A file has pages, each with a CRC-32C: of 4 KiB if it is read where it is mapped, of 64 KiB if it
// may be kept elsewhere. Open verifies the table of contents and these checksums, and opens 1 million
// records in about a millisecond. A page is verified when it is first read, except by Read of a
// column, whose values are checked by CheckAll alone.
// Verify verifies all pages again, and that every key is found.
//
// The one thing to know before using it: a file may be damaged, cut or unreadable while it is
// open. Read it in functions that defer Guard, which returns ErrDamaged then. A wrong checksum
// reads
//
//	the file is damaged: bytes 131072 to 196608 of dir/people-000001.cols4 (records) have a wrong checksum
//
// and Verify joins at most ten such errors. An error of Open, of Verify and of Files.InOrder always
// names the file. Errors have no text of a record.
package keyed
