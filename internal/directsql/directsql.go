// Package directsql reads an SQLite database by the C interface of its
// library, past database/sql and the driver: for look-ups by the million, of
// which each costs less than a row costs there.
//
// The one thing to know before using it: what a Stmt hands out lies in
// SQLite's memory, and is gone at the next Step or Reset.
package directsql

import (
	"errors"
	"fmt"
	"path/filepath"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Conn is a connection that only reads. It is not safe from several
// goroutines at once, its statements and blocks included.
type Conn struct {
	tls        *libc.TLS
	db         uintptr
	statements []*Stmt
	blocks     []Block
}

// Open opens a database file that is there. pragmas are settings of the
// connection, such as "cache_size(-8192)".
func Open(path string, pragmas ...string) (c *Conn, err error) {
	c = &Conn{tls: libc.NewTLS()}
	defer func() {
		if err != nil {
			err = fmt.Errorf("open %s: %w", path, errors.Join(err, c.Close()))
			c = nil
		}
	}()
	name, err := libc.CString(filepath.ToSlash(path))
	if err != nil {
		return c, err
	}
	defer libc.Xfree(c.tls, name)
	// Readers of a database with a write-ahead log write to its index, so
	// read-only would not do. No mutex: c is for one goroutine at a time.
	flags := int32(sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_NOMUTEX)
	out, err := c.out()
	if err != nil {
		return c, err
	}
	defer libc.Xfree(c.tls, out)
	result := sqlite3.Xsqlite3_open_v2(c.tls, name, out, flags, 0)
	c.db = libc.AtomicLoadPUintptr(out) // of what could not be opened too
	if result != sqlite3.SQLITE_OK {
		return c, c.failed(result)
	}
	for _, p := range append([]string{"busy_timeout(10000)", "query_only(1)"}, pragmas...) {
		if err := c.set(p); err != nil {
			return c, err
		}
	}
	return c, nil
}

// set makes a setting. What it says about it is not looked at.
func (c *Conn) set(pragma string) error {
	s, err := c.Prepare("PRAGMA " + pragma)
	if err != nil {
		return err
	}
	_, err = s.Step()
	s.Reset()
	return err
}

// Close gives everything back, statements and blocks included.
func (c *Conn) Close() error {
	for _, s := range c.statements {
		sqlite3.Xsqlite3_finalize(c.tls, s.p)
	}
	var err error
	if result := sqlite3.Xsqlite3_close_v2(c.tls, c.db); result != sqlite3.SQLITE_OK {
		err = c.failed(result)
	}
	for _, b := range c.blocks {
		libc.Xfree(c.tls, b.p)
	}
	c.tls.Close()
	return err
}

// out is memory for an address that SQLite returns.
func (c *Conn) out() (uintptr, error) {
	p := libc.Xcalloc(c.tls, 1, 8)
	if p == 0 {
		return 0, errMemory
	}
	return p, nil
}

var errMemory = errors.New("no memory")

// Error is what SQLite says is wrong.
type Error struct {
	Code    int // its extended result code
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func (c *Conn) failed(result int32) error {
	message := "no memory"
	if c.db != 0 {
		message = libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
	}
	return &Error{int(result), message}
}

// Block is memory of SQLite's that statements are given values from without
// their being copied each time. It lasts until Close.
type Block struct {
	p     uintptr
	Bytes []byte
}

// Block makes a block of size bytes.
func (c *Conn) Block(size int) (Block, error) {
	p := libc.Xmalloc(c.tls, libc.Tsize_t(size))
	if p == 0 {
		return Block{}, errMemory
	}
	b := Block{p, libc.GoBytes(p, size)}
	c.blocks = append(c.blocks, b)
	return b, nil
}
