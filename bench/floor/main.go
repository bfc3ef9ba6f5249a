// Command floor is a lower limit of the time of each operation: one loop on all cores that splits the
// lines of a list at the comma and does for each what cannot be left out, with the standard library. It
// checks little, and writes nothing. It prints rows, matches and the nanoseconds of the loop.
//
// usage: floor hashes LIST.csv | floor OPERATION LIST.csv REFERENCE COLUMN,COLUMN,…
//
// hashes computes MD5, SHA-1 and SHA-256 of an email. An operation looks its key up in tables in memory,
// made of the CSV files in the folder REFERENCE before the loop, and copies the texts of the columns.
package main

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	made := func() func([]byte) bool { return hash }
	switch len(args) {
	case 2:
	case 4:
		t, err := newTables(args[0], args[2], strings.Split(args[3], ","))
		if err != nil {
			return err
		}
		made = func() func([]byte) bool {
			out := make([]byte, 0, 1<<20)
			return func(value []byte) bool {
				row, found := t.find(value)
				if !found {
					return false
				}
				if len(out) > 1<<19 {
					out = out[:0]
				}
				out = append(out, row.texts...)
				for _, digest := range t.hashes {
					out = digest(out, row.email)
				}
				return true
			}
		}
	default:
		return fmt.Errorf("%d arguments; see its source", len(args))
	}
	began := time.Now()
	rows, matches, err := eachLine(args[1], runtime.GOMAXPROCS(0), made)
	fmt.Println(rows, matches, time.Since(began).Nanoseconds())
	return err
}

func hash(value []byte) bool {
	a, b, c := md5.Sum(value), sha1.Sum(value), sha256.Sum256(value)
	runtime.KeepAlive(&a)
	runtime.KeepAlive(&b)
	runtime.KeepAlive(&c)
	return true
}
