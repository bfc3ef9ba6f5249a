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
	"sync/atomic"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	var matches atomic.Int64
	made := func() func([]byte) { return hash }
	switch len(args) {
	case 2:
	case 4:
		t, err := newTables(args[0], args[2], strings.Split(args[3], ","))
		if err != nil {
			return err
		}
		made = func() func([]byte) {
			out := make([]byte, 0, 1<<20)
			return func(value []byte) {
				row, found := t.find(value)
				if !found {
					return
				}
				matches.Add(1)
				if len(out) > 1<<19 {
					out = out[:0]
				}
				out = row.appendTo(out)
			}
		}
	default:
		return fmt.Errorf("%d arguments; see its source", len(args))
	}
	began := time.Now()
	rows, err := eachLine(args[1], runtime.GOMAXPROCS(0), made)
	fmt.Println(rows, matches.Load(), time.Since(began).Nanoseconds())
	return err
}

func hash(value []byte) {
	a, b, c := md5.Sum(value), sha1.Sum(value), sha256.Sum256(value)
	runtime.KeepAlive(&a)
	runtime.KeepAlive(&b)
	runtime.KeepAlive(&c)
}
