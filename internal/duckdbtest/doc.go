// Package duckdbtest holds no code: its tests load datasets into DuckDB by the
// statements that leadetl schema prints, and compare what is there with what
// went in. It is a module of its own because DuckDB is C++ and large.
package duckdbtest
