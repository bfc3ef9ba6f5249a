package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// blockSize is the number of bytes that a worker reads at a time.
const blockSize = 1 << 20

// maxLine bounds the part of a line that lies beyond its block.
const maxLine = 1 << 10

// eachLine calls what is made for each worker with the second field of every line except the header,
// and returns the number of lines, and of those with a match.
func eachLine(name string, workers int, made func() func(value []byte) bool) (rows, matches int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var next, total, matched atomic.Int64 // next block; lines and matches so far
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			buffer, of := make([]byte, 1+blockSize+maxLine), made()
			for errs[w] == nil {
				var lines, found int64
				lines, found, errs[w] = eachOfBlock(f, (next.Add(1)-1)*blockSize, buffer, of)
				total.Add(lines)
				matched.Add(found)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err == io.EOF {
			errs[i] = nil
		}
	}
	return total.Load(), matched.Load(), errors.Join(errs...)
}

// eachOfBlock calls of with those of the lines that begin in the block at offset. It also reads the
// byte before, which says whether a line begins with the block. No byte is before
// the header, so the header is left out.
func eachOfBlock(f io.ReaderAt, offset int64, buffer []byte, of func(value []byte) bool) (lines, matches int64, err error) {
	from := max(offset-1, 0)
	n, err := f.ReadAt(buffer, from)
	if err != nil && err != io.EOF {
		return 0, 0, err
	}
	if int64(n) <= offset-from {
		return 0, 0, io.EOF
	}
	data, inBlock := buffer[:n], int(offset+blockSize-from)
	at := bytes.IndexByte(data, '\n') + 1
	for at > 0 && at < min(inBlock, n) {
		line := data[at:]
		end := bytes.IndexByte(line, '\n')
		if end >= 0 {
			line = line[:end]
		} else if n == len(buffer) {
			return lines, matches, errors.New("a line is longer than this loop is made for")
		}
		if of(line[bytes.IndexByte(line, ',')+1:]) {
			matches++
		}
		lines++
		if end < 0 {
			break
		}
		at += end + 1
	}
	return lines, matches, nil
}
