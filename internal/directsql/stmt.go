package directsql

import (
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Stmt is a prepared statement. Parameters count from 1, columns from 0.
type Stmt struct {
	c *Conn
	p uintptr
}

// Prepare prepares a statement that lasts until Close.
func (c *Conn) Prepare(query string) (*Stmt, error) {
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, text)
	out, err := c.out()
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, out)
	if result := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, text, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, out, 0); result != sqlite3.SQLITE_OK {
		return nil, c.failed(result)
	}
	s := &Stmt{c, libc.AtomicLoadPUintptr(out)}
	c.statements = append(c.statements, s)
	return s, nil
}

// BindInt sets a parameter of a statement that was reset.
func (s *Stmt) BindInt(parameter int32, v int64) {
	s.bound(sqlite3.Xsqlite3_bind_int64(s.c.tls, s.p, parameter, v))
}

// BindBlob sets a parameter of a statement that was reset to b.Bytes[from:to],
// which stay as they are until the next Reset.
func (s *Stmt) BindBlob(parameter int32, b Block, from, to int) {
	n := len(b.Bytes[from:to])
	s.bound(sqlite3.Xsqlite3_bind_blob(s.c.tls, s.p, parameter, b.p+uintptr(from), int32(n), sqlite3.SQLITE_STATIC))
}

// bound refuses what only a programming mistake can cause: a parameter that
// the statement does not have, or a statement that was not reset.
func (s *Stmt) bound(result int32) {
	if result != sqlite3.SQLITE_OK {
		panic("directsql: " + s.c.failed(result).Error())
	}
}

// Step goes to the next row and reports whether there is one.
func (s *Stmt) Step() (row bool, err error) {
	switch result := sqlite3.Xsqlite3_step(s.c.tls, s.p); result {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.failed(result)
	}
}

// Reset ends the reading of rows; Step begins anew. Parameters keep their
// values.
func (s *Stmt) Reset() {
	sqlite3.Xsqlite3_reset(s.c.tls, s.p) // an error is that of the last Step
}

// Int is a column as a number, 0 where it is null.
func (s *Stmt) Int(column int32) int64 { return sqlite3.Xsqlite3_column_int64(s.c.tls, s.p, column) }

// Null reports whether a column is null.
func (s *Stmt) Null(column int32) bool {
	return sqlite3.Xsqlite3_column_type(s.c.tls, s.p, column) == sqlite3.SQLITE_NULL
}

// Bytes is a column's text in UTF-8, or its blob; empty where it is null. It
// lasts until the next Step or Reset.
func (s *Stmt) Bytes(column int32) []byte {
	p := sqlite3.Xsqlite3_column_blob(s.c.tls, s.p, column)
	return libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, column)))
}
