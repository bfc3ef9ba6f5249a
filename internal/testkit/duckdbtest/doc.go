// Package duckdbtest holds no code: its tests load datasets into DuckDB with the
// statements that leadetl schema prints, and compare the result with the input.
// It is a module of its own because DuckDB is C++ and large.
package duckdbtest
