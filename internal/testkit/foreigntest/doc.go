// Package foreigntest holds no code: its tests read Parquet files of other
// programs, and compare every value with what DuckDB reads. It is a module of
// its own because DuckDB is C++ and large.
package foreigntest
