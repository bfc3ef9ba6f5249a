package main

import "github.com/leadetl/leadetl/internal/figures"

// How numbers are written, here and on the page of a report.
var (
	grouped = figures.Grouped
	size    = figures.Size
	share   = figures.Share
	digits  = figures.Digits
	decimal = figures.Decimal
	compact = figures.Compact
	short   = figures.Short
)
